// SPDX-License-Identifier: Apache-2.0
// Judges whether a restored job continued exactly: the steps after its last checkpoint run twice, before the failure
// and after it, and the program prints numbers with them. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace gridctl::job {

// Reads numbers by step in lines of output ("step 12 loss 0.31", "{'loss': 0.7, 'epoch': 0.02}", tqdm's "32/64 [...
// loss=0.5]"). Bytes come in pieces of any size and are not trusted. For long runs, keeps the first and the last steps.
class StepNumbers {
 public:
  struct Step {
    double epoch = 0, step = 0;
    auto operator<=>(const Step&) const = default;
  };
  struct Value {
    double number = 0;
    double unit = 0;        // of the last printed digit
    bool ambiguous = false;  // printed with two different numbers
  };
  using Series = std::map<Step, Value>;

  void read(std::string_view bytes);
  void add(const std::string& name, Step step, Value value);
  // Keyed by the counting word and the name, such as "iter loss".
  [[nodiscard]] const std::map<std::string, Series>& series() const { return series_; }
  void add_absent(const StepNumbers& earlier);  // of steps that are not here

 private:
  void read_line();
  std::string line_;
  double epoch_ = 0;  // of the last line that named one
  std::map<std::string, Series> series_;
};

enum class Exactness : std::uint8_t { cannot_tell, exact, other_data, repeats };
[[nodiscard]] std::string_view exactness_word(Exactness verdict);  // for programs: "exact", "other_data", …

struct ExactnessVerdict {
  Exactness verdict = Exactness::cannot_tell;
  std::string number;                // that was compared, such as "loss"
  std::size_t steps = 0;             // in common
  std::size_t steps_after = 0;       // that the restored attempt has printed with this number
  bool complete = false;             // it has come as far as the earlier attempt
  double largest_difference = 0;     // between two numbers of one step
  double differs_from = 0;           // the first step that differs
  std::string why;                   // one line for people
};

// `first`: the attempt that started from nothing. `before`: the steps before the failure. `after`: the restored
// attempt.
[[nodiscard]] ExactnessVerdict judge_exactness(const StepNumbers& first, const StepNumbers& before,
                                               const StepNumbers& after);

// Describes what to change in a program, by how its checkpoints were recognised ("torch:ckpt.pt",
// "transformers:checkpoint-500").
[[nodiscard]] std::string exactness_remedy(Exactness verdict, std::string_view recognised_by);
// Returns one line for people: why, and what to change.
[[nodiscard]] std::string exactness_text(const ExactnessVerdict& verdict, std::string_view recognised_by);

}  // namespace gridctl::job
