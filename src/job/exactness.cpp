// SPDX-License-Identifier: Apache-2.0
#include "job/exactness.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>

#include "base/formatted.hpp"
#include "base/text.hpp"

namespace gridctl::job {

namespace {

constexpr std::size_t k_line_bytes_max = 4096;
constexpr std::size_t k_series_max = 64;
constexpr std::size_t k_first_steps = 1024, k_last_steps = 8192;  // kept of a series
constexpr std::size_t k_steps_in_common_min = 8;
constexpr std::size_t k_first_batches_min = 12, k_first_batches_max = 512;  // steps compared with the run's first
constexpr int k_shift_max = 2;           // steps by which the first step printed may be off
constexpr int k_neighbours = 4;          // to each side, of the line through a step's surroundings
constexpr double k_coincidence = 5.5;    // standard deviations: one in fifty million, for each of five shifts
constexpr double k_noise_visible = 2.5;  // noise of fewer printed units cannot tell runs apart
constexpr double k_fine = 2e-6;          // of a number: who prints so many digits shows any difference
constexpr double k_same = 0.05;          // of the noise: parallel sums may round differently

constexpr std::string_view k_between = " \t:=#\"'[(";  // a name and its number
constexpr std::string_view k_epoch = "epoch";
// The finest count comes first.
constexpr std::array<std::string_view, 5> k_counting = {"step", "iteration", "iter", "batch", k_epoch};
// Lists names that describe a program's speed, place or schedule, and nothing about its data.
constexpr std::array<std::string_view, 18> k_about_speed = {
    "time", "second", "elapsed", "duration", "per_s", "/s",    "speed",    "throughput", "tokens",
    "mem",  "util",   "flops",   "learning", "decay", "momentum", "samples", "version",    "date"};
constexpr std::array<std::string_view, 24> k_about_speed_whole = {
    "s",  "ms", "us",  "dt",   "eta", "t",    "h",   "m",     "fps",  "mfu", "pid", "rank",
    "gb", "mb", "gib", "port", "lr",  "v_num", "seed", "step_s", "total", "size", "gpu", "node"};
// Lists names that a person would look at first.
constexpr std::array<std::string_view, 10> k_telling = {"loss", "nll", "ppl", "perplexity", "error",
                                                        "rmse", "mse", "reward", "acc", "norm"};

// Words before a name that are part of it.
constexpr std::array<std::string_view, 6> k_kinds = {"train ", "training ", "val ", "validation ", "eval ", "test "};

bool is_name_character(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '/' || c == '.'; }

bool counts(std::string_view name, std::string_view word) {
  return name == word || (name.size() > word.size() && name.ends_with(word) &&
                          !is_letter(name[name.size() - word.size() - 1]));
}

bool is_about_speed(std::string_view name) {
  const auto within = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
  return std::ranges::any_of(k_about_speed, within) ||
         std::ranges::find(k_about_speed_whole, name) != k_about_speed_whole.end() || name.ends_with("_ms");
}

struct Number {
  StepNumbers::Value value;
  std::size_t end = 0;  // behind it
};

// Reads a number at `at`: "-0.53", "1.2e-05". Not "20.1ms": a number with a unit is a speed or a size.
std::optional<Number> number_at(std::string_view line, std::size_t at) {
  std::size_t end = at;
  const auto digits = [&] {
    const std::size_t begin = end;
    while (end < line.size() && is_digit(line[end])) ++end;
    return end - begin;
  };
  if (end < line.size() && (line[end] == '-' || line[end] == '+')) ++end;
  const std::size_t whole = digits();
  std::size_t decimals = 0;
  if (end < line.size() && line[end] == '.') {
    ++end;
    decimals = digits();
  }
  if (whole + decimals == 0 || whole > 15 || decimals > 20) return std::nullopt;
  int exponent = 0;
  if (end + 1 < line.size() && line[end] == 'e') {
    const std::size_t mantissa_end = end++;
    const bool negative = line[end] == '-';
    if (negative || line[end] == '+') ++end;
    const std::size_t begin = end;
    if (digits() == 0 || end - begin > 3) {
      end = mantissa_end;
    } else {
      exponent = std::stoi(std::string(line.substr(begin, end - begin))) * (negative ? -1 : 1);
    }
  }
  if (end < line.size() && (is_letter(line[end]) || line[end] == '_')) return std::nullopt;
  if (end + 1 < line.size() && line[end] == ':' && is_digit(line[end + 1])) return std::nullopt;  // the time of day
  Number number;
  number.value.number = std::strtod(std::string(line.substr(at, end - at)).c_str(), nullptr);
  number.value.unit = std::pow(10.0, exponent - static_cast<int>(decimals));
  number.end = end;
  if (!std::isfinite(number.value.number)) return std::nullopt;
  return number;
}

struct Named {
  std::string name;
  StepNumbers::Value value;
};

// Returns each "name: number" of a line in lower case.
std::vector<Named> named_numbers(std::string_view line) {
  std::vector<Named> found;
  for (std::size_t at = 0; at < line.size();) {
    if (!is_letter(line[at]) || (at > 0 && is_name_character(line[at - 1]))) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < line.size() && is_name_character(line[end])) ++end;
    std::string name(line.substr(at, end - at));
    for (const std::string_view kind : k_kinds)
      if (line.substr(0, at).ends_with(kind)) name = std::string(kind) + name;
    std::size_t value = end;
    while (value < std::min(line.size(), end + 10) && k_between.find(line[value]) != std::string_view::npos) ++value;
    if (line.substr(value).starts_with("tensor(")) value += 7;
    at = end;
    if (value == end) continue;
    if (const std::optional<Number> number = number_at(line, value)) {
      found.push_back({std::move(name), number->value});
      at = number->end;
    }
  }
  return found;
}

// Returns the 32 of tqdm's " 50%|####  | 32/64 [00:01<00:01" and of Keras's "32/64 [=====>" at the start of a line.
std::optional<double> progress_bar(std::string_view line) {
  std::size_t at = line.rfind("| ");
  at = at == std::string_view::npos ? 0 : at + 2;
  while (at < line.size() && line[at] == ' ') ++at;
  std::size_t end = at;
  while (end < line.size() && is_digit(line[end])) ++end;
  if (end == at || end - at > 12 || end + 1 >= line.size() || line[end] != '/' || !is_digit(line[end + 1])) return std::nullopt;
  return std::strtod(std::string(line.substr(at, end - at)).c_str(), nullptr);
}

// Removes the colours of terminals ("\x1b[1m").
std::string uncoloured(std::string_view line) {
  std::string plain;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] != '\x1b') {
      plain += line[at];
      continue;
    }
    while (at < line.size() && !is_letter(line[at])) ++at;
  }
  return plain;
}

}  // namespace

void StepNumbers::read(std::string_view bytes) {
  for (const char c : bytes) {
    if (c == '\n' || c == '\r') {
      read_line();
      line_.clear();
    } else if (line_.size() < k_line_bytes_max) {
      line_ += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
  }
}

void StepNumbers::read_line() {
  if (line_.find('\x1b') != std::string::npos) line_ = uncoloured(line_);
  const std::vector<Named> numbers = named_numbers(line_);
  Step step;
  std::string_view counting;
  for (const std::string_view word : k_counting) {
    const auto found = std::ranges::find_if(numbers, [&](const Named& one) { return counts(one.name, word); });
    if (found == numbers.end()) continue;
    if (word == k_epoch) epoch_ = step.epoch = found->value.number;
    else if (counting.empty()) step.step = found->value.number;
    if (counting.empty()) counting = word;
  }
  if (counting.empty() || counting == k_epoch)
    if (const std::optional<double> bar = progress_bar(line_)) {
      step = {epoch_, *bar};
      counting = "progress";
    }
  if (counting.empty()) return;
  for (const Named& one : numbers) {
    const bool is_count = std::ranges::any_of(k_counting, [&](std::string_view word) { return counts(one.name, word); });
    if (!is_count && !is_about_speed(one.name)) add(std::string(counting) + " " + one.name, step, one.value);
  }
}

void StepNumbers::add(const std::string& name, Step step, Value value) {
  if (series_.size() >= k_series_max && !series_.contains(name)) return;
  Series& series = series_[name];
  const auto [known, is_new] = series.try_emplace(step, value);
  if (!is_new && known->second.number != value.number) known->second.ambiguous = true;
  if (series.size() > k_first_steps + 2 * k_last_steps) {
    const auto begin = std::next(series.begin(), k_first_steps);
    series.erase(begin, std::next(begin, k_last_steps));
  }
}

void StepNumbers::add_absent(const StepNumbers& earlier) {
  for (const auto& [name, series] : earlier.series_) {
    const Series here = series_.contains(name) ? series_.at(name) : Series{};
    for (const auto& [step, value] : series)
      if (!here.contains(step)) add(name, step, value);
  }
}

std::string_view exactness_word(Exactness verdict) {
  switch (verdict) {
    case Exactness::exact: return "exact";
    case Exactness::other_data: return "other_data";
    case Exactness::repeats: return "repeats";
    case Exactness::cannot_tell: break;
  }
  return "cannot_tell";
}

namespace {

using Series = StepNumbers::Series;

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Subtracts from each value the line through its neighbours: the noise of its batch remains, without the trend.
std::vector<double> residuals_of(const std::vector<double>& values) {
  const int count = static_cast<int>(values.size());
  std::vector<double> residuals(values.size());
  for (int i = 0; i < count; ++i) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (int j = std::max(0, i - k_neighbours); j <= std::min(count - 1, i + k_neighbours); ++j) {
      if (j == i) continue;
      const double dx = j - i, value = values[static_cast<std::size_t>(j)];
      ++n, x += dx, y += value, xx += dx * dx, xy += dx * value;
    }
    const double determinant = n * xx - x * x;
    const double expected = determinant > 0 ? (y * xx - x * xy) / determinant : (n > 0 ? y / n : 0);
    residuals[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(i)] - expected;
  }
  return residuals;
}

double noise_of(const std::vector<double>& values) {
  std::vector<double> sizes = residuals_of(values);
  for (double& size : sizes) size = std::abs(size);
  return 1.4826 * median_of(std::move(sizes));
}

std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  const double middle = (static_cast<double>(values.size()) - 1) / 2;
  for (std::size_t place = 0; place < order.size(); ++place) ranks[order[place]] = static_cast<double>(place) - middle;
  return ranks;
}

double product_of(const std::vector<double>& a, const std::vector<double>& b, std::size_t lag = 0) {
  double sum = 0;
  for (std::size_t i = lag; i < a.size(); ++i) sum += a[i] * b[i - lag];
  return sum;
}

// Returns by how many standard deviations the noise of two series is more alike than by chance. Uses ranks, so that a
// few spikes decide nothing; neighbours in a series are not independent, which leaves fewer true samples.
double likeness(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks_of(residuals_of(a)), y = ranks_of(residuals_of(b));
  const double xx = product_of(x, x), yy = product_of(y, y);
  if (xx <= 0 || yy <= 0) return 0;
  double dependence = 1;
  for (std::size_t lag = 1; lag <= 2 * k_neighbours && lag < x.size() / 2; ++lag)
    dependence += std::abs(2 * (product_of(x, x, lag) / xx) * (product_of(y, y, lag) / yy));
  const double samples = static_cast<double>(x.size()) / dependence - 3;
  const double r = std::min(product_of(x, y) / std::sqrt(xx * yy), 0.9999);
  return samples > 1 ? std::atanh(r) * std::sqrt(samples) / 1.03 : 0;
}

std::vector<double> values_of(const Series& series, std::size_t most) {
  std::vector<double> values;
  for (const auto& [step, value] : series) {
    if (value.ambiguous) continue;
    values.push_back(value.number);
    if (values.size() == most) break;
  }
  return values;
}

struct Pair {
  StepNumbers::Step step;
  double before, after, unit;
};

std::vector<Pair> common_steps(const Series& before, const Series& after) {
  std::vector<Pair> pairs;
  for (const auto& [step, value] : after) {
    const auto found = before.find(step);
    if (found == before.end() || found->second.ambiguous || value.ambiguous) continue;
    pairs.push_back({step, found->second.number, value.number, std::max(found->second.unit, value.unit)});
  }
  return pairs;
}

// Returns whether two runs on different data would print different numbers.
bool tells_runs_apart(const std::vector<Pair>& pairs, double noise) {
  std::vector<double> units, sizes;
  bool varies = false;
  for (const Pair& pair : pairs) {
    units.push_back(pair.unit);
    sizes.push_back(std::abs(pair.before));
    varies = varies || pair.before != pairs.front().before;
  }
  const double unit = median_of(units);
  return varies && (noise >= k_noise_visible * unit || unit <= k_fine * median_of(sizes));
}

std::string number_text(double number) { return formatted("%.4g", number); }

// Returns whether the steps after the restore are like the first ones of the run, and those before the failure were
// not.
bool repeats_first_steps(const Series& first, const Series& before, const Series& after) {
  const std::vector<double> of_run = values_of(first, k_first_batches_max), again = values_of(after, k_first_batches_max);
  if (of_run.empty() || again.empty() || after.begin()->first <= first.begin()->first) return false;
  std::vector<double> had;  // what stood at the same steps before the failure
  for (const auto& [step, value] : after)
    if (const auto found = before.find(step); found != before.end()) had.push_back(found->second.number);
  const auto alike = [&](const std::vector<double>& one, int shift) {
    const std::size_t skip_run = shift > 0 ? static_cast<std::size_t>(shift) : 0;
    const std::size_t skip_one = shift < 0 ? static_cast<std::size_t>(-shift) : 0;
    if (of_run.size() <= skip_run || one.size() <= skip_one) return false;
    const std::size_t count = std::min(of_run.size() - skip_run, one.size() - skip_one);
    if (count < k_first_batches_min) return false;
    const auto part = [count](const std::vector<double>& all, std::size_t skip) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(skip);
      return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    return likeness(part(of_run, skip_run), part(one, skip_one)) > k_coincidence;
  };
  for (int shift = -k_shift_max; shift <= k_shift_max; ++shift)
    if (alike(again, shift)) return !alike(had, shift);
  return false;
}

std::string_view bare(std::string_view name) { return name.substr(name.find(' ') + 1); }

ExactnessVerdict judge_series(const std::string& name, const Series& first, const Series& before, const Series& after) {
  ExactnessVerdict out;
  out.number = std::string(bare(name));
  const std::vector<Pair> pairs = common_steps(before, after);
  out.steps = pairs.size();
  out.steps_after = after.size();
  out.complete = !before.empty() && !after.empty() && after.rbegin()->first >= before.rbegin()->first;
  if (pairs.size() < k_steps_in_common_min) return out;
  std::vector<double> had;
  for (const Pair& pair : pairs) had.push_back(pair.before);
  const double noise = noise_of(had);
  if (!tells_runs_apart(pairs, noise)) return out;
  std::size_t differ = 0;
  // The first number after a restore may be a mean over fewer steps.
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const double difference = std::abs(pairs[i].after - pairs[i].before);
    const bool same = difference <= std::max(1.01 * pairs[i].unit, k_same * noise);
    if (!same && i > 0 && ++differ == 1) out.differs_from = pairs[i].step.step != 0 ? pairs[i].step.step : pairs[i].step.epoch;
    if (i > 0 || same) out.largest_difference = std::max(out.largest_difference, difference);
  }
  if (differ == 0) out.verdict = Exactness::exact;
  else out.verdict = repeats_first_steps(first, before, after) ? Exactness::repeats : Exactness::other_data;
  return out;
}

std::string why_of(const ExactnessVerdict& of) {
  const std::string steps = std::to_string(of.steps) + " steps";
  switch (of.verdict) {
    case Exactness::exact:
      return "continued exactly: '" + of.number + "' is the same before the failure and after it, at " + steps +
             " that ran twice" +
             (of.largest_difference > 0 ? " (largest difference " + number_text(of.largest_difference) + ")" : "");
    case Exactness::other_data:
      return "other data: '" + of.number + "' differs by up to " + number_text(of.largest_difference) + " from step " +
             number_text(of.differs_from) + " on, at " + steps + " that ran twice";
    case Exactness::repeats:
      return "repeats its first batches: after the restore, '" + of.number +
             "' follows that of the first steps of the run, and differs by up to " + number_text(of.largest_difference) +
             " at " + steps + " that ran twice";
    case Exactness::cannot_tell: break;
  }
  if (of.steps >= k_steps_in_common_min)
    return "cannot tell: the numbers printed with the " + steps + " that ran twice cannot distinguish runs";
  if (of.steps > 0)
    return "cannot tell: only " + std::to_string(of.steps) + " steps with numbers ran twice, and 8 are needed";
  return "cannot tell: no step has printed numbers both before and after the failure";
}

int telling(std::string_view name) {
  for (std::size_t place = 0; place < k_telling.size(); ++place)
    if (bare(name).find(k_telling[place]) != std::string_view::npos) return static_cast<int>(k_telling.size() - place);
  return 0;
}

}  // namespace

ExactnessVerdict judge_exactness(const StepNumbers& first, const StepNumbers& before, const StepNumbers& after) {
  static const Series k_none;
  ExactnessVerdict best;
  int best_telling = -1;
  for (const auto& [name, series] : after.series()) {
    const auto had = before.series().find(name), began = first.series().find(name);
    if (had == before.series().end()) continue;
    ExactnessVerdict one = judge_series(name, began == first.series().end() ? k_none : began->second, had->second, series);
    const bool better_kind = (one.verdict != Exactness::cannot_tell) > (best.verdict != Exactness::cannot_tell);
    const bool same_kind = (one.verdict != Exactness::cannot_tell) == (best.verdict != Exactness::cannot_tell);
    const bool more = telling(name) > best_telling || (telling(name) == best_telling && one.steps > best.steps);
    if (!better_kind && !(same_kind && more)) continue;
    best = std::move(one);
    best_telling = telling(name);
  }
  best.why = why_of(best);
  return best;
}

std::string exactness_remedy(Exactness verdict, std::string_view recognised_by) {
  if (verdict != Exactness::other_data && verdict != Exactness::repeats) return {};
  struct Row {
    std::string_view framework, remedy;
  };
  static constexpr Row k_remedies[] = {
      {"transformers", "resume with trainer.train(resume_from_checkpoint=True), leave ignore_data_skip off, and keep the "
                       "rng_state*.pth files in the checkpoint"},
      {"lightning", "pass ckpt_path to trainer.fit, and use a DataLoader with state_dict (torchdata's StatefulDataLoader)"},
      {"accelerate", "use accelerator.save_state and load_state, and accelerator.skip_first_batches for the epoch that was "
                     "interrupted"},
      {"deepspeed", "save torch's, NumPy's and Python's generators and the sampler's position as client_state"},
      {"keras", "derive the seed of the shuffle from the epoch, and skip the batches that are done"},
      {"sb3", "save the replay buffer with the model, and seed the environment from the step"},
      {"orbax", "save the data iterator with the model (Grain has one with state), and derive keys with jax.random.fold_in"},
  };
  for (const Row& row : k_remedies)
    if (recognised_by.starts_with(row.framework)) return std::string(row.remedy);
  return "save the random generators (torch.get_rng_state(), NumPy's, Python's) and the sampler's position in the "
         "checkpoint, or derive the seed of each batch from its step";
}

std::string exactness_text(const ExactnessVerdict& verdict, std::string_view recognised_by) {
  const std::string remedy = exactness_remedy(verdict.verdict, recognised_by);
  return remedy.empty() ? verdict.why : verdict.why + "; to continue exactly, " + remedy;
}

}  // namespace gridctl::job
