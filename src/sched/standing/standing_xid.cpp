// SPDX-License-Identifier: Apache-2.0
// Lists NVIDIA's Xid codes. docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with the Xid Catalog".
#include <algorithm>
#include <array>

#include "sched/standing/standing.hpp"

namespace gridctl::sched {
namespace {

struct XidRange {
  int first, last;
  Weight weight;
  bool jobs_fault;
  std::string_view text;
};

// Sorted by code; the rows do not overlap.
constexpr std::array k_rows{
    XidRange{8, 8, Weight::note, true, "the program's work did not end in time"},
    XidRange{11, 11, Weight::note, true, "an invalid command of the program"},
    XidRange{13, 13, Weight::note, true, "an exception in the program's kernel"},
    XidRange{14, 14, Weight::note, false, "nothing"},
    XidRange{25, 25, Weight::note, true, "an invalid command of the program"},
    XidRange{31, 31, Weight::note, true, "the program accessed memory outside its own"},
    XidRange{32, 32, Weight::note, true, "an invalid command buffer of the program"},
    XidRange{37, 41, Weight::note, true, "a copy or command of the program failed"},
    XidRange{43, 43, Weight::note, true, "the program's channel was reset after its own fault"},
    XidRange{44, 44, Weight::note, true, "a fault of the program during a context switch"},
    XidRange{45, 45, Weight::note, true,
             "the program was removed from the GPU, because it ended or an earlier error occurred"},
    XidRange{46, 46, Weight::grave, false, "the GPU stopped processing"},
    XidRange{48, 48, Weight::grave, false, "uncorrectable memory error"},
    XidRange{54, 54, Weight::grave, false, "a power cable is not connected"},
    XidRange{60, 60, Weight::note, true, "a fault of the program's video work"},
    XidRange{62, 62, Weight::grave, false, "the GPU's power controller halted"},
    XidRange{63, 63, Weight::bad, false, "bad memory was marked for replacement at the next reset"},
    XidRange{64, 64, Weight::grave, false, "bad memory could not be marked for replacement"},
    XidRange{66, 73, Weight::note, true, "an error in the program's graphics, copy or video work"},
    XidRange{74, 74, Weight::grave, false, "NVLink error"},
    XidRange{75, 77, Weight::note, true, "a copy of the program failed"},
    XidRange{79, 79, Weight::grave, false, "the GPU has fallen off the bus"},
    XidRange{80, 80, Weight::note, true, "a damaged command buffer"},
    XidRange{82, 86, Weight::note, true, "a fault of the program's copy or video work"},
    XidRange{88, 89, Weight::note, true, "a fault of the program's video work"},
    XidRange{92, 93, Weight::note, false, "many corrected memory errors"},
    XidRange{94, 94, Weight::bad, false, "an uncorrectable memory error hit one program only"},
    XidRange{95, 95, Weight::grave, false, "an uncorrectable memory error may have hit every program"},
    XidRange{96, 107, Weight::note, true, "a fault of the program's video work"},
    XidRange{109, 109, Weight::grave, false, "contexts could not be switched in time"},
    XidRange{110, 110, Weight::grave, false, "security fault"},
    XidRange{119, 120, Weight::grave, false, "the GPU's system processor (GSP) does not answer"},
    XidRange{121, 121, Weight::note, false, "a corrected error between chips"},
    XidRange{126, 135, Weight::note, true, "a copy of the program failed"},
    XidRange{136, 136, Weight::grave, false, "an NVLink could not be trained"},
    XidRange{137, 137, Weight::note, true, "the program's access over NVLink was refused"},
    XidRange{139, 139, Weight::note, true, "a fault of the program's video work"},
    XidRange{140, 140, Weight::grave, false, "unrecovered memory error"},
    XidRange{141, 141, Weight::note, false, "nothing"},
    XidRange{143, 143, Weight::grave, false, "the GPU could not be initialised"},
    XidRange{144, 150, Weight::grave, false, "NVLink error"},
    XidRange{152, 153, Weight::note, false, "no effect on a GPU"},
    XidRange{154, 154, Weight::grave, false, "the driver asks for a reset or a restart"},
    XidRange{155, 156, Weight::grave, false, "an NVLink or a part of the GPU was taken out of service"},
    XidRange{157, 157, Weight::note, false, "nothing"},
    XidRange{158, 158, Weight::grave, false, "the GPU does not answer in time"},
    XidRange{160, 160, Weight::grave, false, "a memory channel was taken out of service"},
    XidRange{161, 161, Weight::note, false, "nothing"},
    XidRange{162, 162, Weight::grave, false, "the GPU needs a reset"},
    XidRange{171, 172, Weight::bad, false, "location of an uncorrectable memory error"},
};

}  // namespace

XidMeaning xid_meaning(int code) {
  const auto found =
      std::ranges::find_if(k_rows, [&](const XidRange& row) { return code >= row.first && code <= row.last; });
  if (found == k_rows.end()) return {Weight::bad, false, "an error that NVIDIA's driver does not expect"};
  return {found->weight, found->jobs_fault, found->text};
}

}  // namespace gridctl::sched
