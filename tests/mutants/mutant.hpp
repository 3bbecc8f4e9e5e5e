// SPDX-License-Identifier: Apache-2.0
// What tests/mutants/mutate.py puts into sources, and into nothing that ships: faults behind a switch. One build holds
// of a sample; MUTANT_OF_GRIDCTL=N in the environment turns one of them on. No name that begins with GRIDCTL_: the
// agent takes those away from what it starts, and the job's first process is its own. On a host of the testgrid a file
// does, for SSH takes no environment there.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace gridctl_mutants {

inline int choose() {
  if (const char* number = std::getenv("MUTANT_OF_GRIDCTL")) return std::atoi(number);
  char line[16] = "";
  if (std::FILE* file = std::fopen("/etc/gridctl-mutant", "re")) {
    if (std::fgets(line, sizeof line, file) == nullptr) line[0] = '\0';
    std::fclose(file);
  }
  return std::atoi(line);
}
inline const int chosen = choose();
inline bool on(int number) { return chosen == number; }

enum class Operator { less, less_equal, greater, greater_equal, equal, not_equal };

template <class A, class B>
bool compare(Operator op, const A& a, const B& b) {
  switch (op) {
    case Operator::less: return a < b;
    case Operator::less_equal: return !(b < a);
    case Operator::greater: return b < a;
    case Operator::greater_equal: return !(a < b);
    case Operator::equal: return a == b;
    case Operator::not_equal: return !(a == b);
  }
  return false;
}

// `a < b` becomes `a < Instead<7, less, less_equal>{} < b`, which binds as it did.
template <int number, Operator is, Operator other>
struct Instead {};
template <class A, int number, Operator is, Operator other>
struct Left {
  const A& a;
};

#define GRIDCTL_MUTANT_OPERATOR(op)                                                       \
  template <class A, int n, Operator i, Operator o>                                       \
  Left<A, n, i, o> operator op(const A& a, Instead<n, i, o>) {                            \
    return {a};                                                                           \
  }                                                                                       \
  template <class A, class B, int n, Operator i, Operator o>                              \
  bool operator op(Left<A, n, i, o> left, const B& b) {                                   \
    return compare(on(n) ? o : i, left.a, b);                                             \
  }
GRIDCTL_MUTANT_OPERATOR(<)
GRIDCTL_MUTANT_OPERATOR(<=)
GRIDCTL_MUTANT_OPERATOR(>)
GRIDCTL_MUTANT_OPERATOR(>=)
GRIDCTL_MUTANT_OPERATOR(==)
GRIDCTL_MUTANT_OPERATOR(!=)
#undef GRIDCTL_MUTANT_OPERATOR

}  // namespace gridctl_mutants
