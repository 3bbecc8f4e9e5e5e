// SPDX-License-Identifier: Apache-2.0
// The small parts of a job, each at its limits: outputs, words, variants, rank starters, drills, rhythms.
#include <gmock/gmock.h>

#include "job/drill.hpp"
#include "job/outputs.hpp"
#include "job/rank_pace.hpp"
#include "job/rank_start.hpp"
#include "job/spec.hpp"
#include "job/variant.hpp"

namespace gridctl::job::small_parts_test {
namespace {
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Outputs, AreTakenByHowTheJobEnded) {
  const std::vector<Output> outputs{{"a", OutputWhen::always, {}}, {"s", OutputWhen::success, {}}, {"f", OutputWhen::failure, {}}};
  EXPECT_THAT(outputs_at_end(outputs, true), ElementsAre("a", "s"));
  EXPECT_THAT(outputs_at_end(outputs, false), ElementsAre("a", "f"));
}

TEST(Outputs, AreTakenWhileItRunsAsOftenAsTheMostUrgentWants) {
  const OutputSync none = outputs_while_running({{"a", OutputWhen::always, {}}});
  EXPECT_THAT(none.patterns, IsEmpty());
  EXPECT_EQ(none.every, 0s);
  const OutputSync sync = outputs_while_running({{"a", OutputWhen::always, 60s}, {"b", OutputWhen::always, {}}, {"c", OutputWhen::always, 30s}, {"d", OutputWhen::always, 90s}});
  EXPECT_THAT(sync.patterns, ElementsAre("a", "c", "d"));
  EXPECT_EQ(sync.every, 30s);
}

TEST(Words, AreReadBackAsTheyAreSaid) {
  for (const OutputWhen when : {OutputWhen::always, OutputWhen::success, OutputWhen::failure}) {
    Spec spec;
    spec.outputs = {{"x", when, 5s}};
    EXPECT_EQ(parse_spec(to_json(spec))->outputs, spec.outputs) << output_when_name(when);
  }
  for (const Optimize optimize : {Optimize::cost, Optimize::time, Optimize::reliability}) {
    EXPECT_EQ(parse_optimize(optimize_name(optimize)), optimize);
    Spec spec;
    spec.optimize = optimize;
    EXPECT_EQ(parse_spec(to_json(spec))->optimize, optimize);
  }
  EXPECT_FALSE(parse_optimize("luck"));
  for (const JobClass one : {JobClass::automatic, JobClass::tight, JobClass::medium, JobClass::loose, JobClass::service, JobClass::federated})
    EXPECT_EQ(*parse_class(class_name(one)), one);
  for (const Backend one : {Backend::automatic, Backend::nccl, Backend::rccl, Backend::oneccl, Backend::gloo, Backend::mpi, Backend::none})
    EXPECT_EQ(*parse_backend(backend_name(one)), one);
  EXPECT_FALSE(parse_class("bound"));
  EXPECT_EQ(parse_backend("smoke").error().message, "'smoke' is not a collective library");
}

TEST(Workload, ExchangesTwoBytesForEachParameterUnlessItIsSaid) {
  Workload workload;
  EXPECT_FALSE(exchange_bytes(workload));
  workload.params = 7e9;
  EXPECT_EQ(exchange_bytes(workload), 14e9);
  workload.exchange_bytes = 100;
  EXPECT_EQ(exchange_bytes(workload), 100);
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
  spec.constraints.clear_traffic = true;
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

TEST(Variant, IsThatOfTheGpusThatWereLeased) {
  EXPECT_EQ(vendor_of_variant("cuda"), Vendor::nvidia);
  EXPECT_EQ(vendor_of_variant("rocm"), Vendor::amd);
  EXPECT_EQ(vendor_of_variant("xpu"), Vendor::intel);
  EXPECT_FALSE(vendor_of_variant("cpu"));
  Spec spec;
  spec.variants.resize(2);
  spec.variants[0].kind = "rocm";
  spec.variants[1].kind = "cpu";
  EXPECT_EQ(variant_for(spec, Vendor::amd), &spec.variants[0]);
  EXPECT_EQ(variant_for(spec, std::nullopt), &spec.variants[1]);
  EXPECT_EQ(variant_for(spec, Vendor::nvidia), nullptr);
}

TEST(Variant, WithAnyGpuAsksForOneOfItsVendor) {
  Spec spec;
  Variant cuda;
  cuda.kind = "cuda";
  spec.resources.gpus = {{std::nullopt, {}, std::nullopt, std::nullopt, 2, 2}};
  ASSERT_EQ(gpus_wanted(spec, cuda).size(), 1u) << "none beside what is asked for";
  EXPECT_EQ(gpus_wanted(spec, cuda)[0].vendor, Vendor::nvidia);
  spec.resources.gpus = {{Vendor::amd, {}, std::nullopt, std::nullopt, 2, 2}};
  EXPECT_THAT(gpus_wanted(spec, cuda), IsEmpty());
}

RankPlace place_of(int node) {
  RankPlace place;
  place.node_rank = node;
  place.gpus_per_node = 2;
  place.hosts = {{"10.0.0.7", 2}, {"10.0.0.8", 3}};
  place.port = 21000;
  return place;
}
const StarterPaths k_places{"/a gent", "/run/program.sh", "/run/host file", "/run/machines"};

TEST(RankStart, OfMpiSaysEveryVariableThatMakesItUseTheAgent) {
  const std::string text = starter_script(Launcher::mpi, place_of(0), k_places, false);
  for (const char* part :
       {"ln -sf '/a gent' \"$folder/gang-run\"\n", "export PATH=\"$folder:$PATH\"\n",
        "export OMPI_MCA_plm_rsh_agent=gang-run OMPI_MCA_plm_rsh_no_tree_spawn=1\n",
        "export OMPI_MCA_orte_default_hostfile='/run/host file' OMPI_MCA_orte_leave_session_attached=1\n",
        "export OMPI_MCA_oob_tcp_keepalive_time=5 OMPI_MCA_oob_tcp_keepalive_intvl=2\n",
        "export OMPI_MCA_oob_tcp_keepalive_probes=3\n", "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n",
        "export PRTE_MCA_plm_ssh_agent=gang-run PRTE_MCA_prte_default_hostfile='/run/host file'\n",
        "export HYDRA_LAUNCHER=rsh HYDRA_LAUNCHER_EXEC=\"$folder/gang-run\" HYDRA_HOST_FILE=/run/machines\n",
        "export I_MPI_HYDRA_BOOTSTRAP=rsh I_MPI_HYDRA_BOOTSTRAP_EXEC=\"$folder/gang-run\" I_MPI_HYDRA_HOST_FILE=/run/machines\n",
        "'/a gent' gang-end 127; exit 127; }\n", "mpirun -np 5 \"${BASH:-/bin/sh}\" /run/program.sh\n",
        "code=$?\n'/a gent' gang-end \"$code\"\nexit \"$code\"\n"})
    EXPECT_THAT(text, HasSubstr(part));
  const std::string itself = starter_script(Launcher::mpi, place_of(0), k_places, true);
  EXPECT_THAT(itself, Not(HasSubstr("command -v mpirun")));
  EXPECT_THAT(itself, HasSubstr("\n\"${BASH:-/bin/sh}\" /run/program.sh\ncode=$?"));
}

TEST(RankStart, OfRaySaysItsPortsAndWaitsForTheHead) {
  const std::string head = starter_script(Launcher::ray, place_of(0), k_places, false);
  const std::string common = " --node-manager-port 21002 --object-manager-port 21003 --runtime-env-agent-port 21004 --num-gpus 2 --disable-usage-stats --block &\n";
  EXPECT_THAT(head, HasSubstr("ray start --head --port 21000 --include-dashboard false --node-ip-address 10.0.0.7" + common));
  EXPECT_THAT(head, HasSubstr("ray health-check --address 10.0.0.7:21000 >/dev/null 2>&1 && break"));
  EXPECT_THAT(head, HasSubstr("\"${BASH:-/bin/sh}\" /run/program.sh\ncode=$?\n"));
  const std::string other = starter_script(Launcher::ray, place_of(1), k_places, false);
  EXPECT_THAT(other, HasSubstr("until ray health-check --address 10.0.0.7:21000 >/dev/null 2>&1; do sleep 1; done\n"));
  EXPECT_THAT(other, HasSubstr("ray start --address 10.0.0.7:21000 --node-ip-address 10.0.0.8" + common));
  EXPECT_THAT(other, ::testing::EndsWith("exec '/a gent' gang-serve\n"));
}

TEST(RankStart, KnowsWhoStartsTheRanksOfEachLauncherAndHowMany) {
  EXPECT_EQ(starter_of(Launcher::mpi), RankStarter::mpirun);
  EXPECT_EQ(starter_of(Launcher::ray), RankStarter::ray);
  EXPECT_EQ(starter_of(Launcher::torchrun), RankStarter::each_host);
  for (const Launcher one : {Launcher::torchrun, Launcher::deepspeed, Launcher::accelerate, Launcher::slurm_env, Launcher::mpi}) {
    EXPECT_EQ(usual_ranks(one, 2), 2);
    EXPECT_EQ(usual_ranks(one, 1'000'000), k_ranks_per_host_max);
    EXPECT_FALSE(binds_gpus(one));
  }
  for (const Launcher one : {Launcher::plain, Launcher::ray, Launcher::jax, Launcher::tensorflow}) EXPECT_EQ(usual_ranks(one, 2), 1);
  EXPECT_TRUE(binds_gpus(Launcher::jax));
  EXPECT_TRUE(binds_gpus(Launcher::tensorflow));
}

TEST(RankStart, ANegativeSkipIsNone) { EXPECT_EQ(gang_port({"abc"}, Epoch{3}, -4), gang_port({"abc"}, Epoch{3})); }

// --- Drills ----------------------------------------------------------------------------------------------------------

std::map<std::string, ProgressReader::Range> read(const std::string& text) {
  ProgressReader reader;
  reader.read(text + "\n");
  return reader.ranges();
}

TEST(ProgressReader, TakesANumberUpToFourCharactersAway) {
  EXPECT_EQ(read("step:    5").count("step"), 0u);
  EXPECT_EQ(read("step:   5").at("step").highest, 5u);
  EXPECT_EQ(read("step 123456789012345").at("step").highest, 123456789012345u);
  EXPECT_EQ(read("step 1234567890123456").count("step"), 0u) << "sixteen digits are no count";
  EXPECT_EQ(read("STEP 7").at("step").highest, 7u);
  EXPECT_EQ(read("footstep 7").count("step"), 0u);
  EXPECT_EQ(read("footstep 7 step 8").at("step").highest, 8u) << "the next place where the word stands";
  EXPECT_EQ(read("step12").count("step"), 0u);
  EXPECT_EQ(read("step 3\rstep 9\nstep 5").at("step"), (ProgressReader::Range{3, 9}));
}

DrillFacts facts_of(ProgressReader::Range before, ProgressReader::Range after) {
  DrillFacts facts;
  facts.from = "ada";
  facts.to = "bob";
  facts.before["step"] = before;
  facts.after["step"] = after;
  return facts;
}
std::string word_of(const std::optional<DrillVerdict>& verdict) { return verdict ? verdict->word : "none"; }

TEST(DrillVerdict, IsJudgedAtEachEdgeOfItsCounts) {
  EXPECT_EQ(word_of(judge_drill(facts_of({1, 10}, {1, 3}), false)), "no");
  EXPECT_EQ(word_of(judge_drill(facts_of({1, 10}, {2, 3}), false)), "yes");
  EXPECT_EQ(word_of(judge_drill(facts_of({1, 10}, {2, 2}), false)), "none") << "one number is no progress";
  EXPECT_EQ(word_of(judge_drill(facts_of({1, 10}, {2, 2}), true)), "unknown");
  EXPECT_EQ(word_of(judge_drill(facts_of({5, 5}, {5, 6}), false)), "none") << "one number tells not where it began";
  DrillFacts done = facts_of({1, 10}, {11, 11});
  done.succeeded = true;
  EXPECT_EQ(word_of(judge_drill(done, false)), "yes");
  EXPECT_EQ(judge_drill(done, false)->steps_lost, 0u);
  EXPECT_EQ(judge_drill(facts_of({1, 10}, {10, 12}), false)->steps_lost, 1u);
  EXPECT_EQ(judge_drill(facts_of({1, 10}, {8, 12}), false)->steps_lost, 3u);
  EXPECT_EQ(judge_drill(facts_of({1, 10}, {15, 16}), false)->steps_lost, 0u);
}

TEST(DrillVerdict, OfCheckpointsWantsMoreFilesThanWereRestored) {
  DrillFacts facts;
  facts.from = "ada", facts.to = "bob";
  facts.first.root.bytes[0] = std::byte{1};
  facts.restored.files = 3;
  facts.saved_after = SavedState{{5}, {}, 3};
  EXPECT_EQ(word_of(judge_drill(facts, false)), "none");
  EXPECT_THAT(judge_drill(facts, true)->why, HasSubstr("it saved a checkpoint on bob"));
  facts.saved_after->files = 4;
  EXPECT_EQ(word_of(judge_drill(facts, false)), "yes");
  facts.saved_after->root = facts.first.root;
  EXPECT_EQ(word_of(judge_drill(facts, false)), "no");
  facts.saved_after.reset();
  EXPECT_EQ(word_of(judge_drill(facts, false)), "none");
  EXPECT_THAT(judge_drill(facts, true)->why, HasSubstr("it ran on bob"));
  facts.succeeded = true;
  EXPECT_THAT(judge_drill(facts, true)->why, HasSubstr("it finished on bob"));
}

// --- Rhythms ---------------------------------------------------------------------------------------------------------

BootTime at(double s) { return {static_cast<std::int64_t>(s * 1e9)}; }

// Ranks that tell what they compute; how many steps of `steps` the last rank takes `factor` times as long.
RankPace paced(std::uint32_t world, int steps, int slow, double factor) {
  RankPace pace(world);
  for (int step = 0; step < steps; ++step)
    for (std::uint32_t rank = 0; rank < world; ++rank)
      pace.told({rank, step, at(step), rank + 1 == world && step >= steps - slow ? factor : 1.0});
  return pace;
}

TEST(RankPace, WantsEightOfTenStepsAndMoreThanHalfAsLongAgain) {
  EXPECT_FALSE(paced(4, 9, 9, 3).straggler()) << "nine steps are too few";
  ASSERT_TRUE(paced(4, 10, 10, 3).straggler());
  EXPECT_EQ(paced(4, 10, 10, 3).straggler()->rank, 3u);
  EXPECT_EQ(paced(4, 10, 10, 3).straggler()->steps, 10u);
  EXPECT_DOUBLE_EQ(paced(4, 10, 10, 3).straggler()->factor, 3);
  EXPECT_TRUE(paced(4, 20, 8, 3).straggler());
  EXPECT_FALSE(paced(4, 20, 7, 3).straggler());
  EXPECT_FALSE(paced(4, 10, 10, 1.5).straggler());
  EXPECT_TRUE(paced(4, 10, 10, 1.51).straggler());
  EXPECT_FALSE(paced(1, 20, 20, 3).straggler()) << "who is alone has no peers";
  EXPECT_EQ(paced(4, 40, 0, 1).steps(), k_pace_steps + 1) << "older ones are forgotten";
}

TEST(RankPace, CountsNoRankThatDoesNotExistAndNoStepTwice) {
  RankPace pace(2);
  pace.told({2, 0, at(0), 1.0});
  pace.told({0, 0, at(0), 1.0});
  pace.told({0, 0, at(9), 9.0});
  EXPECT_EQ(pace.steps(), 0u);
  pace.told({1, 0, at(0), 1.0});
  EXPECT_EQ(pace.steps(), 1u);
  pace.told({0, 5, at(1), 1.0});
  for (const std::uint32_t rank : {0u, 1u}) pace.told({rank, 6, at(2), 1.0});
  pace.told({1, 5, at(3), 1.0});
  EXPECT_EQ(pace.steps(), 2u) << "an older step will not become whole any more";
}

TEST(Progress, WantsTwentySignsAndAllowsThirtySecondsAtLeast) {
  Progress few, fast, slow;
  for (int i = 0; i < 20; ++i) few.sign(at(i));
  EXPECT_FALSE(few.allowed()) << "nineteen pauses";
  few.sign(at(20));
  EXPECT_EQ(few.allowed(), 30s);
  EXPECT_FALSE(few.hang(at(50)));
  ASSERT_TRUE(few.hang(at(50.5)));
  EXPECT_EQ(few.hang(at(50.5))->silent, 30500ms);
  EXPECT_EQ(few.hang(at(50.5))->allowed, 30s);
  EXPECT_EQ(few.hang(at(50.5))->usual, 1s);
  for (int i = 0; i <= 20; ++i) slow.sign(at(40.0 * i));
  EXPECT_EQ(slow.allowed(), 120s) << "three times as long as it usually takes";
  for (int i = 0; i <= 20; ++i) fast.sign(at(15.0 * i));
  EXPECT_EQ(fast.allowed(), 45s);
  fast.pause(at(400));
  EXPECT_FALSE(fast.hang(at(445)));
  EXPECT_TRUE(fast.hang(at(445.1)));
  fast.sign(at(300));
  EXPECT_TRUE(fast.hang(at(445.1))) << "an older sign is no news";
  Progress paused;
  for (int i = 0; i <= 20; ++i) paused.sign(at(i));
  paused.sign(at(120));
  EXPECT_EQ(paused.allowed(), 150s) << "it has paused for a hundred before";
  EXPECT_EQ((Progress::Hang{61s, 60s, 2s}.text()), "no progress for 61 s; usually there is progress every 2.0 s");
  EXPECT_EQ((Progress::Hang{9900ms, 9s, 10s}.text()), "no progress for 9.9 s; usually there is progress every 10 s");
}

}  // namespace
}  // namespace gridctl::job::small_parts_test
