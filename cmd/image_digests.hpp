// SPDX-License-Identifier: Apache-2.0
// Finds the digests of images that a job names by tag, before the job is placed: borrowed hosts run images by digest.
#pragma once

#include <vector>

#include "cmd/context.hpp"
#include "job/spec.hpp"
#include "sched/place.hpp"

namespace gridctl::cmd {

// Asks the registries of the images, for some seconds in all, if a borrowed host would suit the job otherwise. Digests
// go into the job, and problems into the facts of the hosts.
void find_image_digests(Context& context, job::Spec& spec, std::vector<sched::HostFacts>& hosts);

}  // namespace gridctl::cmd
