// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "agent/job_view.hpp"
#include "support/results.hpp"
#include "unit/store/fixtures.hpp"

namespace gridctl::agent::job_view_test {
namespace {

using namespace std::chrono_literals;
using gridctl::testing::FailsWith;
using gridctl::testing::IsOk;
using ::testing::HasSubstr;

TEST(Specs, AreTakenUpToTheirLimits) {
  const auto refused = [](const std::function<void(wire::AttemptSpec&)>& change) {
    wire::AttemptSpec spec;
    spec.job = {"job"};
    spec.run = "true";
    change(spec);
    const auto checked = check_spec(spec);
    return checked ? std::string() : checked.error().message;
  };
  using Spec = wire::AttemptSpec;
  EXPECT_EQ(refused([](Spec&) {}), "");
  EXPECT_EQ(refused([](Spec& s) { s.run = std::string(256 * 1024, 'x'); }), "");
  EXPECT_THAT(refused([](Spec& s) { s.run = std::string(256 * 1024 + 1, 'x'); }), HasSubstr("larger than 256 KiB"));
  EXPECT_THAT(refused([](Spec& s) { s.setup = std::string(256 * 1024 + 1, 'x'); }), HasSubstr("larger than 256 KiB"));
  EXPECT_THAT(refused([](Spec& s) { s.run = ""; }), HasSubstr("no command"));
  EXPECT_EQ(refused([](Spec& s) { s.mounts.resize(256, {Digest{}, "a"}); }), "");
  EXPECT_THAT(refused([](Spec& s) { s.mounts.resize(257, {Digest{}, "a"}); }), HasSubstr("more than 256"));
  EXPECT_THAT(refused([](Spec& s) { s.gpu_uuids.resize(257, "G"); }), HasSubstr("more than 256"));
  for (const char* bad : {"", "a,b", "a\"b", "a\\b", "a\nb", "../x", "a/./b"})
    EXPECT_THAT(refused([&](Spec& s) { s.mounts = {{Digest{}, bad}}; }), HasSubstr("bad mount target")) << bad;
  EXPECT_EQ(refused([](Spec& s) { s.mounts = {{Digest{}, std::string(1024, 'x')}}; }), "");
  EXPECT_NE(refused([](Spec& s) { s.mounts = {{Digest{}, std::string(1025, 'x')}}; }), "");
  EXPECT_THAT(refused([](Spec& s) { s.checkpoint_path = "/"; }), HasSubstr("bad checkpoint path"));
  EXPECT_EQ(refused([](Spec& s) { s.checkpoint_path = "/x"; }), "");
  for (const std::string& bad : {std::string(), std::string(61, 'g'), std::string("a=b"), std::string("a,b")})
    EXPECT_THAT(refused([&](Spec& s) { s.gpu_uuids = {bad}; }), HasSubstr("bad gpu id")) << bad;
  EXPECT_EQ(refused([](Spec& s) { s.gpu_uuids = {std::string(60, 'g')}; }), "");
  for (const std::string& bad : {std::string(), std::string("-x"), std::string(513, 'i')})
    EXPECT_THAT(refused([&](Spec& s) { s.engine = EngineKind::podman, s.image = bad; }), HasSubstr("bad image")) << bad;
  EXPECT_EQ(refused([](Spec& s) { s.engine = EngineKind::podman, s.image = std::string(512, 'i'); }), "");
  EXPECT_EQ(refused([](Spec& s) { s.engine = EngineKind::podman, s.image_archive = Digest{}; }), "");
  EXPECT_EQ(refused([](Spec& s) { s.cpus = 65536; }), "");
  for (const double bad : {-0.1, 65536.1, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THAT(refused([&](Spec& s) { s.cpus = bad; }), HasSubstr("bad number of CPUs")) << bad;
  EXPECT_EQ(refused([](Spec& s) { s.stop_grace = std::chrono::hours{24}; }), "");
  EXPECT_THAT(refused([](Spec& s) { s.stop_grace = std::chrono::hours{24} + Duration{1}; }),
              HasSubstr("bad stop grace"));
  EXPECT_THAT(refused([](Spec& s) { s.stop_grace = Duration{-1}; }), HasSubstr("bad stop grace"));
  for (const std::string& bad : {std::string(), std::string("1A"), std::string("a-b"), std::string(256, 'a')})
    EXPECT_THAT(refused([&](Spec& s) { s.envs[bad] = "x"; }), HasSubstr("bad name")) << bad;
  EXPECT_EQ(refused([](Spec& s) { s.envs[std::string(255, 'A')] = s.envs["_z9"] = "x"; }), "");
  EXPECT_EQ(refused([](Spec& s) { s.envs["A"] = std::string(128 * 1024, 'x'); }), "");
  EXPECT_THAT(refused([](Spec& s) { s.envs["A"] = std::string(128 * 1024 + 1, 'x'); }), HasSubstr("the value of A"));
  EXPECT_THAT(refused([](Spec& s) { s.envs["A"] = std::string(1, '\0'); }), HasSubstr("the value of A"));
  EXPECT_THAT(refused([](Spec& s) {
                for (int i = 0; i < 5; ++i) s.envs["A" + std::to_string(i)] = std::string(128 * 1024, 'x');
              }),
              HasSubstr("larger than 512 KiB"));
  EXPECT_EQ(refused([](Spec& s) {
              for (int i = 0; i < 1024; ++i) s.envs["A" + std::to_string(i)] = "x";
            }),
            "");
  EXPECT_THAT(refused([](Spec& s) {
                for (int i = 0; i < 1025; ++i) s.envs["A" + std::to_string(i)] = "x";
              }),
              HasSubstr("too many"));
}

TEST(Specs, HaveAValueForEachSecretAndNoOther) {
  wire::AttemptSpec spec;
  spec.secret_names = {"A"};
  EXPECT_THAT(check_secrets(spec, {{"A", "x"}}), IsOk());
  EXPECT_THAT(check_secrets(spec, {}), FailsWith(Code::refused));
  EXPECT_THAT(check_secrets(spec, {{"A", "x"}, {"B", "y"}}), FailsWith(Code::refused));
  EXPECT_THAT(check_secrets(spec, {{"a-b", "x"}}), FailsWith(Code::refused));
}

TEST(Specs, BecomeTheVariablesOfTheJob) {
  const AttemptDir attempt{"/h/jobs/c/j/3"};
  wire::AttemptSpec spec;
  spec.envs = {{"MINE", "1"}, {"GRIDCTL_CKPT_DIR", "forged"}};
  using namespace std::string_literals;
  std::string text = job_environment(spec, view_of(attempt, spec, 2), {});
  EXPECT_THAT(text, HasSubstr("MINE=1\0"s));
  EXPECT_THAT(text, HasSubstr("GRIDCTL_CKPT_DIR=/h/jobs/c/j/3/ckpt\0"s));
  EXPECT_THAT(text, HasSubstr("GRIDCTL_RESUME_FROM=\0"s));
  EXPECT_THAT(text, HasSubstr("GRIDCTL_METRICS=/h/jobs/c/j/3/run/2/metrics\0"s));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("LOGNAME=")));
  spec.engine = EngineKind::docker;
  spec.restore = Digest{};
  spec.restore_name = "j@4";
  spec.envs["HOME"] = "/mine";
  text = job_environment(spec, view_of(attempt, spec, 2), {});
  EXPECT_THAT(text, HasSubstr("GRIDCTL_RESUME_FROM=j@4\0"s));
  EXPECT_THAT(text, HasSubstr("HOME=/mine\0"s)) << "the user's word is the last";
  EXPECT_THAT(text, HasSubstr("LOGNAME=job\0"s));
  EXPECT_THAT(text, HasSubstr("GRIDCTL_CKPT_DIR=/ckpt\0"s));
}

TEST(Specs, TellWhereTheCheckpointsLie) {
  const AttemptDir attempt{"/h/jobs/c/j/3"};
  wire::AttemptSpec spec;
  const auto lies = [&](EngineKind engine, const std::string& path) {
    spec.engine = engine;
    spec.checkpoint_path = path;
    const JobView view = view_of(attempt, spec, 1);
    return view.checkpoints.native() + " = " + view.checkpoint_base.native() + " + " + view.checkpoint_relative;
  };
  EXPECT_EQ(lies(EngineKind::process, ""), "/h/jobs/c/j/3/ckpt = /h/jobs/c/j/3 + ckpt");
  EXPECT_EQ(lies(EngineKind::process, "out//x/"), "/h/jobs/c/j/3/work/out/x = /h/jobs/c/j/3/work + out/x");
  EXPECT_EQ(lies(EngineKind::process, "/work/x"), "/work/x = /h/jobs/c/j/3 + ckpt");
  EXPECT_EQ(lies(EngineKind::podman, "/work/x"), "/work/x = /h/jobs/c/j/3/work + x");
  EXPECT_EQ(lies(EngineKind::podman, "/work/"), "/work/ = /h/jobs/c/j/3 + ckpt");
  EXPECT_EQ(lies(EngineKind::podman, "/data"), "/data = /h/jobs/c/j/3 + ckpt");
}

}  // namespace
}  // namespace gridctl::agent::job_view_test
