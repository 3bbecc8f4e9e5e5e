// SPDX-License-Identifier: Apache-2.0
#include "sched/standing/gamma.hpp"

#include <cmath>

namespace gridctl::sched {

namespace {
constexpr int k_series_max = 100'000;  // about 10 times the square root of the shape are needed
constexpr double k_precision = 1e-15;

double weight(double shape, double x) { return std::exp(shape * std::log(x) - x - std::lgamma(shape)); }

double series(double shape, double x) {
  double term = 1 / shape, sum = term;
  for (int n = 1; n < k_series_max && term > sum * k_precision; ++n) {
    term *= x / (shape + n);
    sum += term;
  }
  return sum * weight(shape, x);
}

// Computes 1 - P(a, x) by Lentz's method.
double continued_fraction(double shape, double x) {
  constexpr double k_tiny = 1e-300;
  double b = x + 1 - shape, c = 1 / k_tiny, d = 1 / b, h = d;
  for (int n = 1; n < k_series_max; ++n) {
    const double a = -n * (n - shape);
    b += 2;
    d = a * d + b;
    c = b + a / c;
    if (std::abs(d) < k_tiny) d = k_tiny;
    if (std::abs(c) < k_tiny) c = k_tiny;
    d = 1 / d;
    h *= d * c;
    if (std::abs(d * c - 1) < k_precision) break;
  }
  return h * weight(shape, x);
}
}  // namespace

double gamma_cdf(double shape, double x) {
  if (x <= 0) return 0;
  return x < shape + 1 ? series(shape, x) : 1 - continued_fraction(shape, x);
}

double gamma_quantile(double shape, double p) {
  double low = 0, high = shape + 1;
  while (gamma_cdf(shape, high) < p) {
    low = high;
    high *= 2;
  }
  // Small shapes have quantiles of many orders of magnitude: halve in the logarithm as soon as that is possible.
  for (int i = 0; i < 400 && high - low > 1e-9 * high; ++i) {
    const double middle = low > 0 ? std::sqrt(low * high) : high > 1e-300 ? high / 1024 : 0;
    if (middle <= 0) return 0;
    (gamma_cdf(shape, middle) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace gridctl::sched
