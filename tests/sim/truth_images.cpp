// SPDX-License-Identifier: Apache-2.0
// Images by tag on borrowed hosts: by digest only, by one that a registry has told, by the same for all attempts of a job
// and its twins; and who waits for a registry waits no longer than until it answers.
#include <algorithm>

#include "host.hpp"
#include "image_registries.hpp"
#include "job/image_reference.hpp"
#include "truth.hpp"
#include "user.hpp"

namespace gridctl::sim {

namespace {
constexpr Nanos k_asked_again = 5 * k_min;  // the longest pause between two questions
constexpr Nanos k_kept = k_min;             // until an answer is kept with a job, and shows
}  // namespace

void Truth::image_told(int laptop, int image, const std::string& digest) {
  images_told_.insert({laptop, image, digest});
  world_.say("laptop", laptop, " is told that image", image, " is ", digest);
}

// A host accepts this.
void Truth::check_image(int host, int laptop, const wire::StartRequest& request) {
  const int which = index(request.spec.job);
  const job::Spec& spec = world_.jobs[static_cast<std::size_t>(which)].spec;
  const int image = world_.image_hub->index_of(spec.image);
  if (image < 0) return;
  ++rules_met["I1"];
  const std::string& name = request.spec.image;
  const std::string where = request.spec.job.value + " epoch " + std::to_string(request.spec.epoch.value) + " on host" + std::to_string(host);
  const bool lent = host < world_.options.lent;
  if (!lent || spec.constraints.image_tags) {
    if (name != spec.image) throw Violation("I1", where + " runs image " + name + ", and its file names " + spec.image);
    return;
  }
  const std::size_t at = name.find('@');
  if (at == std::string::npos) throw Violation("I1", where + ", which is borrowed, runs an image by its tag: " + name);
  const std::string digest = name.substr(at + 1);
  if (!images_told_.contains({laptop, image, digest}))
    throw Violation("I1", where + " runs " + name + ", which no registry has told for " + spec.image);
  const auto [first, fresh] = digests_.try_emplace(family(which), digest);
  if (!fresh && first->second != digest)
    throw Violation("I2", where + " runs " + name + ", and its job ran " + first->second + " before");
}

// By what the daemon knows: a job that wants a digest has it before long once its registry answers.
void Truth::check_image_waits(Laptop& laptop, const control::TrackedJob& job) {
  const std::string& id = job.id().value;
  const int image = world_.options.images == 0 ? -1 : world_.image_hub->index_of(job.spec().image);
  const bool wants = image >= 0 && world_.options.lent > 0 && job.in<job::Done>() == nullptr && !job::images_without_digest(job.spec()).empty();
  const std::optional<Nanos> well = wants ? world_.image_hub->well_since(image) : std::nullopt;
  if (!well || world_.link(laptop.index(), 0).cut_requests > 0) return void(wants_digest_since_.erase(id));
  ++rules_met["I3"];
  const Nanos since = std::max({wants_digest_since_.try_emplace(id, world_.now).first->second, *well, laptop.clear_since()});
  if (world_.now - since > k_asked_again + k_kept)
    throw Violation("I3", id + " still waits for the digest of " + job.spec().image + ", whose registry answers");
}

}  // namespace gridctl::sim
