// SPDX-License-Identifier: Apache-2.0
// Small directories of each layout, each one fault away from a complete one.
#include <gmock/gmock.h>

#include "unit/whole/directory.hpp"
#include "whole/layout_tools.hpp"

namespace gridctl::whole::layouts_units_test {
namespace {

using store::testing::safetensors;
using store::testing::torch_zip;
using ::testing::HasSubstr;

class Units : public ::testing::Test {
 protected:
  std::string of(const std::string& layout, const std::string& path) {
    for (const Unit& unit : find_units(dir.listing.files, dir.access())) {
      if (unit.layout != layout || unit.path != path) continue;
      last = unit;
      return unit.whole ? "whole" : unit.why;
    }
    return "none";
  }
  void save(const std::string& path, const std::string& content = "x") {
    dir.pass(10);
    dir.save(path, content);
  }
  static std::string weights() { return safetensors({{"a", store::testing::noise(40, 1)}}); }
  static std::string archive(const std::string& keys) {
    return torch_zip({{"m/data.pkl", keys}, {"m/data/0", "0123"}});
  }
  Directory dir;
  Unit last;
};

TEST_F(Units, AccelerateEndsWithItsRandomStates) {
  save("model.safetensors", weights());
  save("optimizer.bin");
  EXPECT_THAT(of("accelerate", "."), HasSubstr("random_states_0.pkl"));
  EXPECT_TRUE(last.lacking);
  save("random_states_0.pkl");
  EXPECT_EQ(of("accelerate", "."), "whole");
  EXPECT_EQ(last.settle, std::chrono::seconds{1});
  save("random_states_1.pkl");
  save("notes.txt");
  EXPECT_EQ(of("accelerate", "."), "whole") << "other ranks and other files may come later";
  save("scheduler.bin");
  EXPECT_THAT(of("accelerate", "."), HasSubstr("is newer than random_states_0.pkl"));
  save("random_states_0.pkl");
  EXPECT_EQ(of("accelerate", "."), "whole");
  save("custom_checkpoint_0.pkl");
  EXPECT_EQ(of("accelerate", "."), "whole");
  save("random_states_0.pkl");
  EXPECT_THAT(of("accelerate", "."), HasSubstr("still belongs to the previous save"));
  save("custom_checkpoint_0.pkl", "");
  EXPECT_THAT(of("accelerate", "."), HasSubstr("is still empty"));
}

TEST_F(Units, AccelerateLeavesTheWeightsToHooks) {
  save("unet/diffusion_pytorch_model.safetensors", weights());
  save("optimizer.bin");
  save("COMPLETE", "");
  save("random_states_0.pkl");
  EXPECT_EQ(of("accelerate", "."), "whole");
  save("unet/diffusion_pytorch_model.safetensors", weights());
  EXPECT_THAT(of("accelerate", "."), HasSubstr("is newer than random_states_0.pkl")) << "the next save has begun";
}

TEST_F(Units, AccelerateNeedsAllShardsOfItsWeights) {
  save("optimizer.bin");
  EXPECT_EQ(of("accelerate", "."), "none") << "the name alone may be anybody's";
  dir = {};
  save("model-00001-of-00002.safetensors", weights());
  save("model.safetensors.index.json",
       R"({"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "other.safetensors"}})");
  save("random_states_0.pkl");
  EXPECT_THAT(of("accelerate", "."), HasSubstr("'other.safetensors' does not exist yet"));
  save("model.safetensors.index.json", R"({"weight_map": {"a": "model-00001-of-00002.safetensors"}})");
  save("random_states_0.pkl");
  EXPECT_EQ(of("accelerate", "."), "whole");
  save("model-00001-of-00002.safetensors", weights());
  save("random_states_0.pkl");
  EXPECT_THAT(of("accelerate", "."), HasSubstr("is newer than its index"));
  save("model.safetensors.index.json", R"({"weight_map": 3})");
  save("random_states_0.pkl");
  EXPECT_THAT(of("accelerate", "."), HasSubstr("lists no shards"));
}

TEST_F(Units, TransformersEndWithTheTrainersState) {
  save("checkpoint-7/model.safetensors", weights());
  EXPECT_EQ(of("transformers", "checkpoint-7"), "none") << "save_pretrained of a program's own looks so, too";
  save("checkpoint-7/training_args.bin");
  EXPECT_THAT(of("transformers", "checkpoint-7"), HasSubstr("trainer_state.json' does not exist yet"));
  save("checkpoint-7/trainer_state.json", "{\"step\":");
  EXPECT_THAT(of("transformers", "checkpoint-7"), HasSubstr("trainer_state.json' is incomplete"));
  save("checkpoint-7/trainer_state.json", "{}");
  EXPECT_EQ(of("transformers", "checkpoint-7"), "whole");
  save("checkpoint-7/notes.md");
  EXPECT_EQ(of("transformers", "checkpoint-7"), "whole");
  for (const char* name : {"optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"}) {
    save(std::string("checkpoint-7/") + name, archive("x"));
    EXPECT_THAT(of("transformers", "checkpoint-7"), HasSubstr("trainer_state.json', which is written last")) << name;
    save("checkpoint-7/trainer_state.json", "{}");
    EXPECT_EQ(of("transformers", "checkpoint-7"), "whole");
  }
}

TEST_F(Units, TransformersAreOnlyInFoldersOfTheTrainer) {
  for (const char* folder : {"checkpoint-", "checkpoint-7a", "step-7", "xcheckpoint-7"}) {
    save(std::string(folder) + "/trainer_state.json", "{}");
    EXPECT_EQ(of("transformers", folder), "none") << folder;
  }
  save("checkpoint-8/notes.md");
  EXPECT_EQ(of("transformers", "checkpoint-8"), "none");
  save("checkpoint-9/config.json", "{}");
  EXPECT_EQ(of("transformers", "checkpoint-9"), "none");
  save("checkpoint-11/trainer_state.json", "{}");
  EXPECT_NE(of("transformers", "checkpoint-9"), "none") << "beside one of the Trainer's";
  save("checkpoint-10/adapter_config.json", "{}");
  EXPECT_NE(of("transformers", "checkpoint-10"), "none");
  EXPECT_EQ(of("transformers", "checkpoint-11"), "there are no weights yet");
}

TEST_F(Units, TransformersHaveTheStatesOfAllRanks) {
  save("checkpoint-7/model.safetensors", weights());
  save("checkpoint-7/rng_state_0.pth", archive("x"));
  save("checkpoint-7/rng_state_2.pth", archive("x"));
  save("checkpoint-7/trainer_state.json", "{}");
  EXPECT_THAT(of("transformers", "checkpoint-7"), HasSubstr("rng_state_1.pth"));
  save("checkpoint-7/rng_state_1.pth", archive("x"));
  EXPECT_EQ(of("transformers", "checkpoint-7"), "whole") << "other ranks do not wait for the trainer's state";
}

std::string metadata(const std::vector<std::string>& shards, const std::string& more = "optim") {
  std::string pickle = "\x80\x02";
  for (const std::string& shard : shards) pickle += "X" + shard + "q";
  return pickle + more + ".";
}

TEST_F(Units, DistributedCheckpointsAreNamedByTheirMetadata) {
  save("__0_0.distcp");
  EXPECT_THAT(of("torch-distributed", "."), HasSubstr(".metadata' does not exist yet"));
  EXPECT_FALSE(last.part);
  save(".metadata", metadata({"__0_0.distcp", "__1_0.distcp"}));
  EXPECT_THAT(of("torch-distributed", "."), HasSubstr("'__1_0.distcp' does not exist yet"));
  save("__1_0.distcp", "");
  EXPECT_THAT(of("torch-distributed", "."), HasSubstr("'__1_0.distcp' does not exist yet")) << "it is empty";
  save("__1_0.distcp");
  EXPECT_THAT(of("torch-distributed", "."), HasSubstr("is newer than .metadata"));
  save(".metadata", metadata({"__0_0.distcp", "__1_0.distcp"}));
  EXPECT_EQ(of("torch-distributed", "."), "whole");
  EXPECT_FALSE(last.part);
  EXPECT_EQ(last.files.size(), 3u);
  save(".metadata", metadata({"__0_0.distcp"}, "weights"));
  EXPECT_EQ(of("torch-distributed", "."), "whole");
  EXPECT_TRUE(last.part) << "weights alone are seldom all";
  for (const std::string& odd :
       {std::string("\x80"), std::string("x__0_0.distcp."), metadata({"__0_0.distcp"}) + "x"}) {
    save(".metadata", odd);
    EXPECT_THAT(of("torch-distributed", "."), HasSubstr("is incomplete")) << odd.size();
  }
  save(".metadata", metadata({"_0.distcp", "__0x.distcp"}));
  EXPECT_THAT(of("torch-distributed", "."), HasSubstr("lists no shards"));
}

TEST_F(Units, DistributedCheckpointsMayHaveCompany) {
  save("run/__0_0.distcp");
  save("run/.metadata", metadata({"__0_0.distcp"}));
  EXPECT_EQ(of("torch-distributed", "run"), "whole");
  EXPECT_FALSE(last.part);
  save("run/extra.json", "{}");
  EXPECT_EQ(of("torch-distributed", "run"), "whole");
  EXPECT_TRUE(last.part);
  EXPECT_EQ(last.files.size(), 2u);
}

std::string told(int data, int model, const std::string& more = "") {
  return std::string("module dp_world_sizeK") + static_cast<char>(data) + " mp_world_sizeK" + static_cast<char>(model) +
         more;
}

TEST_F(Units, DeepSpeedCountsTheRanksItTellsOf) {
  save("step5/mp_rank_00_model_states.pt", archive(told(2, 2)));
  const auto optimizer = [](int data, int model) {
    return "step5/zero_pp_rank_" + std::to_string(data) + "_mp_rank_0" + std::to_string(model) + "_optim_states.pt";
  };
  for (const auto& [data, model] : {std::pair{0, 0}, {1, 0}, {0, 1}}) save(optimizer(data, model), archive("x"));
  save("latest", "step5\n");
  EXPECT_THAT(of("deepspeed", "step5"), HasSubstr("only 3 of 4 ranks' optimizer states"));
  EXPECT_TRUE(last.lacking);
  EXPECT_THAT(of("deepspeed", "latest"), HasSubstr("names 'step5', which is incomplete"));
  save(optimizer(1, 1), archive("x"));
  EXPECT_EQ(of("deepspeed", "step5"), "whole") << "the newest is named, whatever comes later";
  EXPECT_EQ(of("deepspeed", "latest"), "whole");
  EXPECT_EQ(last.names, "step5");
}

TEST_F(Units, DeepSpeedWaitsUntilATagIsNamed) {
  save("step5/mp_rank_00_model_states.pt", archive(told(0, 0)));
  EXPECT_THAT(of("deepspeed", "step5"), HasSubstr("'latest' does not name it yet"));
  save("latest", "step5");
  EXPECT_EQ(of("deepspeed", "step5"), "whole");
  save("step6/mp_rank_00_model_states.pt", archive(told(0, 0)));
  EXPECT_THAT(of("deepspeed", "step6"), HasSubstr("does not name it yet"));
  EXPECT_EQ(of("deepspeed", "step5"), "whole");
  save("step7/mp_rank_00_model_states.pt", archive(told(0, 0, " ZeRO")));
  save("latest", "step7");
  EXPECT_THAT(of("deepspeed", "step7"), HasSubstr("zero_pp_rank_0_mp_rank_00_optim_states.pt"));
  EXPECT_EQ(of("deepspeed", "step6"), "whole") << "what is older than the name is done";
}

TEST_F(Units, DeepSpeedOfAnotherHostHasNoModel) {
  save("step5/zero_pp_rank_2_mp_rank_00_optim_states.pt", archive("x"));
  EXPECT_THAT(of("deepspeed", "step5"), HasSubstr("mp_rank_00_model_states.pt' does not exist yet"));
  EXPECT_TRUE(last.lacking) << "another host may have it";
  save("step5/zero_pp_rank_2_mp_rank_00_model_states.pt", archive(told(0, 0)));
  EXPECT_THAT(of("deepspeed", "step5"), HasSubstr("does not name it yet"));
  EXPECT_FALSE(last.lacking);
}

TEST_F(Units, MegatronHasAFileInEachRanksFolder) {
  const auto rank = [](const std::string& name) { return "iter_0000010/mp_rank_" + name + "/model_optim_rng.pt"; };
  for (const char* name : {"00", "01"}) save(rank(name), archive("x"));
  EXPECT_THAT(of("megatron", "iter_0000010"), HasSubstr("does not name it yet"));
  EXPECT_TRUE(last.lacking);
  save("latest_checkpointed_iteration.txt", "10");
  EXPECT_EQ(of("megatron", "iter_0000010"), "whole");
  save("iter_0000010/mp_rank_02/other.pt", archive("x"));
  save("latest_checkpointed_iteration.txt", "10");
  EXPECT_THAT(of("megatron", "iter_0000010"), HasSubstr("mp_rank_02/model_optim_rng.pt"));
  save("iter_0000010/mp_rank_02/model_rng.pt", archive("x"));
  save("latest_checkpointed_iteration.txt", "10");
  EXPECT_EQ(of("megatron", "iter_0000010"), "whole");
  save(rank("01"), archive("x").substr(0, 60));
  save("latest_checkpointed_iteration.txt", "10");
  EXPECT_THAT(of("megatron", "iter_0000010"), HasSubstr("is incomplete"));
}

TEST_F(Units, MegatronMayBeDistributed) {
  save("iter_0000000/__0_0.distcp");
  save("iter_0000000/common.pt", archive("x"));
  save("latest_checkpointed_iteration.txt", "0");
  EXPECT_THAT(of("megatron", "iter_0000000"), HasSubstr(".metadata"));
  save("iter_0000000/.metadata", metadata({"__0_0.distcp"}));
  save("latest_checkpointed_iteration.txt", "0");
  EXPECT_EQ(of("megatron", "iter_0000000"), "whole");
  EXPECT_EQ(of("megatron", "latest_checkpointed_iteration.txt"), "whole");
  save("iter_5/common.pt", archive("x"));
  EXPECT_NE(of("megatron", "iter_5"), "none");
  for (const char* folder : {"iter_", "iter_x", "iter_7"}) {
    save(std::string(folder) + "/file.pt", archive("x"));
    EXPECT_EQ(of("megatron", folder), "none") << folder;
  }
}

TEST_F(Units, TensorFlowEndsWithItsIndex) {
  save("ckpt-1.data-00000-of-00002");
  EXPECT_THAT(of("tensorflow", "ckpt-1"), HasSubstr("'ckpt-1.index' does not exist yet"));
  save("ckpt-1.index", "");
  EXPECT_THAT(of("tensorflow", "ckpt-1"), HasSubstr("is still empty"));
  save("ckpt-1.index");
  EXPECT_THAT(of("tensorflow", "ckpt-1"), HasSubstr("ckpt-1.data-00001-of-00002"));
  save("ckpt-1.data-00001-of-00002");
  EXPECT_EQ(of("tensorflow", "ckpt-1"), "whole");
  save("checkpoint", "model_checkpoint_path: \"/old/folder/ckpt-1\"\nmore");
  EXPECT_EQ(of("tensorflow", "checkpoint"), "whole");
  EXPECT_EQ(last.settle, std::chrono::milliseconds{500});
  save("checkpoint", "model_checkpoint_path: \"ckpt-2\"");
  EXPECT_THAT(of("tensorflow", "checkpoint"), HasSubstr("names 'ckpt-2', which is incomplete"));
  save("checkpoint", "nonsense");
  EXPECT_THAT(of("tensorflow", "checkpoint"), HasSubstr("names ''"));
  dir = {};
  save("book.index");
  save("checkpoint", "model_checkpoint_path: \"book\"");
  EXPECT_EQ(of("tensorflow", "book"), "none");
  EXPECT_EQ(of("tensorflow", "checkpoint"), "none");
}

TEST_F(Units, LightningKnowsItsOwnArchives) {
  save("a.ckpt", archive("pytorch-lightning_version"));
  EXPECT_EQ(of("lightning", "a.ckpt"), "whole");
  save("b.ckpt", archive("another"));
  EXPECT_EQ(of("lightning", "b.ckpt"), "none");
  const std::string torn = archive("pytorch-lightning_version").substr(0, 80);
  for (const char* name : {"epoch=1.ckpt", "step=2.ckpt", "last.ckpt", "last-v1.ckpt"}) {
    save(name, torn);
    EXPECT_THAT(of("lightning", name), HasSubstr("is incomplete")) << name;
  }
  save("c.ckpt", torn);
  EXPECT_EQ(of("lightning", "c.ckpt"), "none") << "it may be anybody's";
  save("epoch=1.pt", torn);
  EXPECT_EQ(of("lightning", "epoch=1.pt"), "none");
}

TEST_F(Units, OrbaxIsARenamedFolder) {
  save("7/_CHECKPOINT_METADATA");
  EXPECT_EQ(of("orbax", "7"), "whole");
  save("8/_METADATA");
  EXPECT_EQ(of("orbax", "8"), "none");
  save("8/manifest.ocdbt");
  EXPECT_EQ(of("orbax", "8"), "whole");
  save("_CHECKPOINT_METADATA");
  EXPECT_EQ(of("orbax", "."), "none") << "the top is never renamed";
}

TEST_F(Units, AdaptersHaveWeightsAndTheirConfiguration) {
  save("adapter_config.json", "{}");
  EXPECT_THAT(of("peft", "."), HasSubstr("adapter_model.safetensors' does not exist yet"));
  EXPECT_TRUE(last.part);
  save("adapter_model.safetensors", weights());
  EXPECT_EQ(of("peft", "."), "whole");
  save("adapter_config.json", "{\"a\":");
  EXPECT_THAT(of("peft", "."), HasSubstr("adapter_config.json' is incomplete"));
  save("adapter_config.json", "{}");
  save("adapter_model.safetensors", weights().substr(0, 30));
  EXPECT_THAT(of("peft", "."), HasSubstr("adapter_model.safetensors' is incomplete"));
  dir = {};
  save("x/adapter_model.bin", archive("x"));
  EXPECT_THAT(of("peft", "x"), HasSubstr("x/adapter_config.json' does not exist yet"));
}

TEST_F(Units, ArchivesOfOtherKinds) {
  save("m.keras", archive("x"));
  EXPECT_EQ(of("keras", "m.keras"), "whole");
  save("m.keras", archive("x").substr(0, 60));
  EXPECT_THAT(of("keras", "m.keras"), HasSubstr("is incomplete"));
  save("s.zip", torch_zip({{"policy.pth", "x"}, {"data", "x"}}));
  EXPECT_EQ(of("stable-baselines3", "s.zip"), "whole");
  save("t.zip", torch_zip({{"policy.pth", "x"}}));
  EXPECT_EQ(of("stable-baselines3", "t.zip"), "none");
  save("u.zip", torch_zip({{"data", "x"}}));
  EXPECT_EQ(of("stable-baselines3", "u.zip"), "none");
}

TEST_F(Units, StatesThatAreAllInOneFile) {
  const auto layout = [&](const std::string& path, const std::string& content) {
    dir = {};
    dir.save(path, content);
    const Access access = dir.access();
    const Folder top(dir.listing.files, "", access);
    return std::string(self_contained(top, dir.listing.files[0]));
  };
  EXPECT_EQ(layout("x.pt", archive("optimizer")), "torch");
  EXPECT_EQ(layout("x.pt", archive("opt_state")), "torch");
  EXPECT_EQ(layout("x.pt", archive("weights")), "");
  EXPECT_EQ(layout("ckpt.pt", archive("weights")), "format");
  EXPECT_EQ(layout("ckpt.pt", archive("optimizer").substr(0, 60)), "");
  EXPECT_EQ(layout("ckpt.json", "{}"), "format");
}

TEST_F(Units, WeightsAreKnownByTheirNames) {
  const auto state = [&](const std::string& name) {
    dir = {};
    save("checkpoint-1/" + name, name.ends_with(".index.json") ? "{}" : name.ends_with(".safetensors") ? weights() : "x");
    save("checkpoint-1/trainer_state.json", R"({"log_history": [{"grad_norm": NaN}]})");
    return of("transformers", "checkpoint-1");
  };
  for (const char* stem : {"model", "pytorch_model", "adapter_model", "tf_model", "flax_model", "mm_projector", "sft/adapter_model"})
    EXPECT_NE(state(std::string(stem) + ".bin"), "there are no weights yet") << stem;
  for (const char* ending : {".safetensors", ".bin", ".h5", ".msgpack"})
    EXPECT_NE(state(std::string("model") + ending), "there are no weights yet") << ending;
  for (const char* other : {"optimizer.bin", "scheduler.bin", "model.txt", "model.json", "training_args.bin"})
    EXPECT_EQ(state(other), "there are no weights yet") << other;
}

TEST_F(Units, MegatronsOtherFoldersAreNoIterations) {
  save("iter_0000010/mp_rank_00/model_optim_rng.pt", archive("x"));
  for (const char* other : {"iter_x/mp_rank_00/model_optim_rng.pt", "iter_/mp_rank_00/model_optim_rng.pt",
                            "tensorboard/events", "xiter_0000020/mp_rank_00/model_optim_rng.pt"})
    save(other, archive("x"));
  save("latest_checkpointed_iteration.txt", "10");
  EXPECT_EQ(of("megatron", "iter_0000010"), "whole");
  for (const char* other : {"iter_x", "iter_", "tensorboard", "xiter_0000020"}) EXPECT_EQ(of("megatron", other), "none") << other;
}

TEST(Pickles, HoldNumbersBehindTheirKeys) {
  using namespace std::string_literals;
  for (const auto& [pickle, number] : {std::pair{"keyK\x07"s, std::optional<std::uint64_t>(7)},
                                       {"keyq\x01K\x08"s, 8},
                                       {"keyr\x01\0\0\0K\x09"s, 9},
                                       {"key\x94M\x01\x02"s, 0x201},
                                       {"keyJ\x01\x02\x03\x04"s, 0x04030201},
                                       {"keyX\x07"s, std::nullopt},
                                       {"key"s, std::nullopt},
                                       {"keyq"s, std::nullopt},
                                       {"otherK\x07"s, std::nullopt}})
    EXPECT_EQ(pickled_number(pickle, "key"), number) << pickle;
}

TEST_F(Units, DeepSpeedBelievesNoMoreThanAHundredThousandRanks) {
  const auto with = [](std::uint32_t data) {
    std::string number = "J";  // four bytes
    for (int i = 0; i < 4; ++i) number += static_cast<char>(data >> (8 * i) & 0xff);
    return archive("module dp_world_size" + number + " mp_world_sizeK\x01 ZeRO");
  };
  save("step5/mp_rank_00_model_states.pt", with(100'000));
  save("step5/zero_pp_rank_0_mp_rank_00_optim_states.pt", archive("x"));
  save("latest", "step5");
  EXPECT_THAT(of("deepspeed", "step5"), HasSubstr("only 1 of 100000 ranks' optimizer states"));
  save("step5/mp_rank_00_model_states.pt", with(100'001));
  EXPECT_EQ(of("deepspeed", "step5"), "whole") << "that is no number of ranks: what is there is all that is known";
}

}  // namespace
}  // namespace gridctl::whole::layouts_units_test
