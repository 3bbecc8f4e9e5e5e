// SPDX-License-Identifier: Apache-2.0
#include "plan/model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gridctl::plan::model_test {
namespace {
using ::testing::HasSubstr;

struct Known {
  const char* name;
  double params;  // as the model cards or the safetensors index print them
};
class Family : public ::testing::TestWithParam<Known> {};
TEST_P(Family, HasAsManyParametersAsItsModelCardSays) {
  const Model* model = family(GetParam().name);
  ASSERT_NE(model, nullptr);
  EXPECT_NEAR(count_params(*model).total / GetParam().params, 1, 0.01);
  EXPECT_THAT(faults_of(*model), ::testing::IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(Published, Family,
                         ::testing::Values(Known{"llama-3-8b", 8.03e9}, Known{"meta-llama/Meta-Llama-3-70B", 70.55e9},
                                           Known{"Llama-3.1-405B-Instruct", 405.85e9}, Known{"llama-3.2-1b", 1.236e9},
                                           Known{"llama-2-7b", 6.738e9}, Known{"mistral-7b", 7.248e9},
                                           Known{"mixtral-8x7b", 46.7e9}, Known{"qwen2.5-7b", 7.616e9},
                                           Known{"qwen3-30b-a3b", 30.5e9}, Known{"deepseek-v3", 671e9},
                                           Known{"gpt2", 124.4e6}, Known{"gpt2-xl", 1557.6e6},
                                           Known{"bloom-176b", 176.2e9}, Known{"gemma-2-9b", 9.24e9},
                                           Known{"phi-4", 14.66e9}));

TEST(Family, AllHaveShapesThatArePossible) {
  EXPECT_GE(families().size(), 20U);
  for (const Model& model : families()) EXPECT_THAT(faults_of(model), ::testing::IsEmpty()) << model.name;
  EXPECT_EQ(family("no-such-model"), nullptr);
}

TEST(ActiveParameters, AreThoseThatATokenPassesThrough) {
  EXPECT_NEAR(count_params(*family("mixtral-8x7b")).active, 12.9e9, 0.3e9);
  EXPECT_NEAR(count_params(*family("deepseek-v3")).active, 37e9, 1.5e9);
}

TEST(UsualShape, HasTheParametersThatWereAskedFor) {
  for (const double params : {125e6, 1.3e9, 7e9, 70e9, 1e12}) {
    Model model = usual_shape(params);
    EXPECT_DOUBLE_EQ(count_params(model).total, params);
    model.params_said = 0;
    EXPECT_NEAR(count_params(model).total / params, 1, 0.06) << params;
  }
}

TEST(Config, OfTransformersIsRead) {
  const auto dense =
      read_config(R"({"model_type":"llama","hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,
      "num_hidden_layers":32,"num_key_value_heads":8,"vocab_size":128256,"tie_word_embeddings":false,"max_position_embeddings":8192,"rope_scaling":null})");
  ASSERT_TRUE(dense);
  EXPECT_NEAR(count_params(*dense).total, 8.03e9, 0.01e9);
  const auto mixture =
      read_config(R"({"model_type":"mixtral","hidden_size":4096,"intermediate_size":14336,"num_attention_heads":32,
      "num_hidden_layers":32,"num_key_value_heads":8,"vocab_size":32000,"num_local_experts":8,"num_experts_per_tok":2})");
  ASSERT_TRUE(mixture);
  EXPECT_NEAR(count_params(*mixture).total, 46.7e9, 0.2e9);
  const auto gpt = read_config(
      R"({"model_type":"gpt2","n_embd":768,"n_head":12,"n_layer":12,"n_positions":1024,"vocab_size":50257})");
  ASSERT_TRUE(gpt);
  EXPECT_NEAR(count_params(*gpt).total, 124.4e6, 0.3e6);
}

TEST(Config, TellsWhatIsWrongWithIt) {
  const auto says = [](const char* text) {
    const auto read = read_config(text);
    return read ? std::string("fine") : read.error().message;
  };
  EXPECT_EQ(says("{"), "not JSON");
  EXPECT_EQ(says("[]"), "not a JSON object");
  EXPECT_EQ(says("{}"), "no model_type");
  EXPECT_THAT(says(R"({"model_type":"bert"})"), HasSubstr("'bert' is not a transformer decoder"));
  EXPECT_EQ(says(R"({"model_type":"llama"})"), "no num_hidden_layers");
  EXPECT_THAT(says(R"({"model_type":"llama","num_hidden_layers":"x"})"), HasSubstr("num_hidden_layers"));
  EXPECT_EQ(
      says(R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"vocab_size":100})"),
      "no intermediate_size");
  EXPECT_THAT(
      says(R"({"model_type":"mixtral","num_hidden_layers":2,"hidden_size":64,"num_attention_heads":4,"vocab_size":100,
      "intermediate_size":128,"num_local_experts":8})"),
      HasSubstr("no experts_per_token"));
  EXPECT_THAT(
      says(
          R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":65,"num_attention_heads":4,"vocab_size":100,"intermediate_size":128})"),
      HasSubstr("65 is not divisible by 4 heads"));
}

}  // namespace
}  // namespace gridctl::plan::model_test
