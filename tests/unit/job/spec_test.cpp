// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "job/outputs.hpp"
#include "job/spec.hpp"
#include "job/variant.hpp"

namespace gridctl::job::spec_test {
namespace {

using namespace std::chrono_literals;

Spec a_full_spec() {
  Spec spec;
  spec.name = "train-gpt";
  spec.resources.gpus = {{Vendor::nvidia, {"A100", "H100"}, 40'000'000'000ull, std::nullopt, 2, 4},
                         {std::nullopt, {}, std::nullopt, 24'000'000'000ull, 1, 1}};
  spec.resources.cpus = 4.5;
  spec.resources.memory_bytes = 16ull << 30;
  spec.resources.disk_bytes = 50ull << 30;
  spec.num_nodes = 2;
  spec.image = "/home/ada/image.tar";
  spec.image_is_archive = true;
  spec.workdir = "/home/ada/code";
  spec.envs = {{"LR", "3e-4"}, {"TEXT", "é \"quoted\"\n"}};
  spec.secrets = {"HF_TOKEN"};
  spec.file_mounts = {{"/data", "/home/ada/data"}};
  spec.setup = "pip install -r requirements.txt";
  spec.run = "python train.py\n";
  spec.resume_run = "python train.py --resume";
  spec.checkpoint = {"out", CheckpointPolicy::Interval::fixed, 15min, KeepPolicy::newest(5)};
  spec.recovery = {90s, 7, {33, 34}, {2}, 36h};
  spec.constraints = {{"DE", "NO"}, {"US"}, {"home"}, 1.5, {"ada"}, {{"rack", "7"}}};
  spec.workload = {JobClass::tight, Backend::mpi, 12, 7e9, 14'000'000'000ull, 1500ms, 500, 40h, 80ull << 30};
  spec.workload.trained = {"llama-3-8b", "lora", "ddp", "dp=8,zero=1", 2048, 64, true};
  spec.workload.predicted = {"dp=8 zero=1 mb=1", "H100 SXM5 80GB", 8, 1.5, 87000, 40e9, R"({"model":"llama-3-8b"})"};
  spec.budget_total = 50;
  spec.max_duration = 48h;
  spec.deadline = Deadline{WallTime{1'800'000'000'000}, {}, true};
  return spec;
}

using ::testing::HasSubstr;

TEST(Variant, WantsOfItsVendorWhatTheJobLeavesOpen) {
  Spec spec;
  Variant rocm, cpu;
  rocm.kind = "rocm", cpu.kind = "cpu";
  EXPECT_THAT(gpus_wanted(spec, cpu), ::testing::IsEmpty());
  ASSERT_EQ(gpus_wanted(spec, rocm).size(), 1u);
  EXPECT_EQ(gpus_wanted(spec, rocm).front().vendor, Vendor::amd);
  spec.resources.gpus = {{Vendor::nvidia, {"A100"}, std::nullopt, std::nullopt, 2, 2},
                         {std::nullopt, {}, std::nullopt, 24'000'000'000ull, 4, 4},
                         {Vendor::amd, {"MI300X"}, std::nullopt, std::nullopt, 1, 1}};
  const std::vector<GpuRequest> wanted = gpus_wanted(spec, rocm);
  ASSERT_EQ(wanted.size(), 2u) << "the A100 is no AMD";
  EXPECT_EQ(wanted[0].vendor, Vendor::amd);
  EXPECT_EQ(wanted[0].count_min, 4);
  EXPECT_EQ(wanted[1].names, std::vector<std::string>{"MI300X"});
  EXPECT_THAT(gpus_wanted(spec, cpu), ::testing::IsEmpty());
}

TEST(Spec, ReturnsUnchangedFromJson) {
  for (const Spec& spec : {Spec{}, a_full_spec()}) {
    const auto back = parse_spec(to_json(spec));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, spec);
    EXPECT_EQ(to_json(*back), to_json(spec));
  }
}

TEST(Spec, ReturnsEveryRuleOfKeeping) {
  Spec spec;
  EXPECT_THAT(to_json(spec), ::testing::HasSubstr("\"keep\":3"));  // as before there were more
  KeepPolicy& keep = spec.checkpoint.keep;
  keep = KeepPolicy::newest(2);
  keep.hourly = 3, keep.daily = 4, keep.weekly = 5, keep.best = 6;
  keep.metric = "eval/loss";
  keep.highest = true;
  EXPECT_EQ(parse_spec(to_json(spec))->checkpoint.keep, keep);
  EXPECT_FALSE(parse_spec(to_json(spec))->checkpoint.standby);
  spec.checkpoint.standby = true;
  EXPECT_TRUE(parse_spec(to_json(spec))->checkpoint.standby);
  spec.checkpoint.upload_limit = 20'000'000;
  EXPECT_EQ(*parse_spec(to_json(spec)), spec);
}

TEST(Spec, KeepsEveryCheckpointIntervalKind) {
  for (auto kind :
       {CheckpointPolicy::Interval::automatic, CheckpointPolicy::Interval::fixed, CheckpointPolicy::Interval::off}) {
    Spec spec;
    spec.checkpoint.interval = kind;
    EXPECT_EQ(parse_spec(to_json(spec))->checkpoint.interval, kind);
  }
}

TEST(Spec, IgnoresKeysItDoesNotKnowAndFillsMissingOnes) {
  const auto spec = parse_spec(R"({"format":1,"name":"a","run":"true","future":{"x":1}})");
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->recovery, RecoveryPolicy{});
  EXPECT_EQ(spec->checkpoint, CheckpointPolicy{});
  EXPECT_EQ(spec->workload, Workload{});  // as of those who wrote before there was any
}

TEST(Spec, RefusesWhatIsNotItsOwnWithStateUnreadable) {
  for (const char* text :
       {"", "null", "[]", "{}", "{\"name\":1}", R"({"format":1,"name":"a","run":7})",
        R"({"format":5,"name":"a","run":"x"})", R"({"format":1,"name":"a","run":"x","envs":{"A":1}})",
        R"({"format":1,"name":"a","run":"x","resources":{"gpus":[{"vendor":"voodoo"}]}})",
        R"({"format":1,"name":"a","run":"x","workload":{"class":"bound"}})",
        R"({"format":1,"name":"a","run":"x","workload":{"step_ms":"soon"}})", "{\"name\":\"a\""}) {
    const auto spec = parse_spec(text);
    ASSERT_FALSE(spec) << text;
    EXPECT_EQ(spec.error().code, Code::state_unreadable) << text;
  }
}

TEST(Spec, OnlyServicesNeedAGridctlThatKnowsThem) {
  Spec spec;
  spec.name = "a";
  spec.run = "x";
  EXPECT_NE(to_json(spec).find(R"("format":1)"), std::string::npos);
  spec.service.emplace().port = 1;
  EXPECT_NE(to_json(spec).find(R"("format":4)"), std::string::npos);
}

TEST(Spec, NeverFailsToSerialiseInvalidUtf8) {
  Spec spec = a_full_spec();
  spec.run = "echo \xff";
  EXPECT_TRUE(parse_spec(to_json(spec)));
}

TEST(Words, AreReadBackAsTheyAreSaid) {
  for (const OutputWhen when : {OutputWhen::always, OutputWhen::success, OutputWhen::failure}) {
    Spec spec;
    spec.outputs = {{"x", when, 5s}};
    EXPECT_EQ(parse_spec(to_json(spec))->outputs, spec.outputs) << output_when_name(when);
  }
  for (const Optimize optimize : {Optimize::cost, Optimize::time, Optimize::reliability}) {
    EXPECT_EQ(optimize_name.find(optimize_name(optimize)), optimize);
    Spec spec;
    spec.optimize = optimize;
    EXPECT_EQ(parse_spec(to_json(spec))->optimize, optimize);
  }
  EXPECT_FALSE(optimize_name.find("luck"));
  for (const JobClass one : {JobClass::automatic, JobClass::tight, JobClass::medium, JobClass::loose, JobClass::service, JobClass::federated})
    EXPECT_EQ(*parse_class(class_name(one)), one);
  for (const Backend one : {Backend::automatic, Backend::nccl, Backend::rccl, Backend::oneccl, Backend::gloo, Backend::mpi, Backend::none})
    EXPECT_EQ(*parse_backend(backend_name(one)), one);
  EXPECT_FALSE(parse_class("bound"));
  EXPECT_EQ(parse_backend("smoke").error().message, "'smoke' is not a collective library");
}

TEST(Spec, KeepsWhatASecondLookAtItMayForget) {
  Spec spec;
  spec.name = "n";
  spec.run = "r";
  spec.num_nodes = 4;
  spec.gang.nodes_min = 2, spec.gang.spares = 1, spec.gang.ranks_per_node = 8;
  spec.root_writable = true;
  spec.variants = {{"rocm", "image", true, "setup", "run", "resume"}};
  spec.recovery.hangs = Hangs::tell;
  spec.recovery.stragglers = Stragglers::replace;
  spec.recovery.restore_from = RestoreFrom::trusted;
  spec.constraints.clear_traffic = spec.constraints.image_tags = true;
  spec.constraints.unmeasured = spec.constraints.unproven = true;
  spec.image_digests["a:1"] = "sha256:0";
  spec.constraints.query = "cpus>=4";
  spec.constraints.is_private = spec.constraints.any_interconnect = true;
  spec.checkpoint.copies = 3, spec.checkpoint.signal = 10, spec.checkpoint.local_shards = true;
  spec.checkpoint.whole_when = "*.done";
  spec.resources.any_order = true;
  spec.priority = -3;
  spec.owner = "ada";
  spec.twins = 2;
  spec.twin_of = {"leader"};
  spec.deadline = Deadline{{}, 90min, false};
  const auto back = parse_spec(to_json(spec));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, spec);
  for (const RestoreFrom from : {RestoreFrom::own_class, RestoreFrom::any}) {
    spec.recovery.restore_from = from;
    EXPECT_EQ(parse_spec(to_json(spec))->recovery.restore_from, from);
  }
  EXPECT_THAT(to_json(spec), HasSubstr("\"format\":2")) << "who knows no variants must not read it";
  spec.variants.clear();
  EXPECT_THAT(to_json(spec), HasSubstr("\"format\":1"));
  EXPECT_EQ(parse_spec(R"({"format":1,"name":"a","run":"b","resources":{"gpus":[{"count_min":3}]}})")->resources.gpus.at(0).count_max, 3)
      << "as many as at least";
}

TEST(Spec, TakesCheckpointsOnHostsOfOthersWhateverItSays) {
  using Interval = CheckpointPolicy::Interval;
  Spec spec;
  spec.checkpoint.interval = Interval::off;
  EXPECT_EQ(interval_on(spec, false), Interval::off);
  EXPECT_EQ(interval_on(spec, true), Interval::automatic);
  spec.checkpoint.interval = Interval::fixed;
  EXPECT_EQ(interval_on(spec, true), Interval::fixed);
  spec.checkpoint.interval = Interval::off;
  spec.tasks.emplace();
  EXPECT_EQ(interval_on(spec, true), Interval::off) << "a bag has no state to lose";
  spec.tasks.reset();
  spec.service.emplace();
  EXPECT_EQ(interval_on(spec, true), Interval::off) << "nor has a service";
}

TEST(Spec, SaysHowManyHostsAndWhenItIsDue) {
  Spec spec;
  spec.num_nodes = 4;
  EXPECT_EQ(nodes_text(spec), "4");
  spec.gang.nodes_min = 2;
  EXPECT_EQ(nodes_text(spec), "2..4");
  EXPECT_EQ(moment_of({WallTime{500}, 1s, true}, WallTime{7}).ms, 500);
  EXPECT_EQ(moment_of({{}, 2s, false}, WallTime{7}).ms, 2007);
}

}  // namespace
}  // namespace gridctl::job::spec_test
