// SPDX-License-Identifier: Apache-2.0
// Implements the Gamma distribution: the belief about a failure rate after counting failures. Pure.
#pragma once

namespace gridctl::sched {

// Computes P(a, x), the regularised lower incomplete gamma function: probability that a Gamma(shape a, rate 1) variable
// is at most x. Series below a + 1, continued fraction above (Numerical Recipes, 6.2). REQUIRES: shape > 0, x >= 0.
[[nodiscard]] double gamma_cdf(double shape, double x);
// Returns the x with gamma_cdf(shape, x) = p, to 1e-9 of itself. REQUIRES: shape > 0, 0 < p < 1.
[[nodiscard]] double gamma_quantile(double shape, double p);

}  // namespace gridctl::sched
