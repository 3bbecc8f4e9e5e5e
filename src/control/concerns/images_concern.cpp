// SPDX-License-Identifier: Apache-2.0
// Finds the digests of images that jobs name by tag, because borrowed hosts run images by digest only. The digest is
// kept with the job: all its attempts, twins and members on such hosts run the same image. A registry that does not
// answer is asked again, each time after a longer pause; until then those hosts are not used for the job.
#include <algorithm>
#include <map>
#include <set>

#include "control/concerns/table.hpp"
#include "control/follow/lent_hosts.hpp"
#include "control/reach/image_registries.hpp"
#include "job/image_reference.hpp"

namespace gridctl::control {

namespace {

constexpr Duration k_again_first = std::chrono::seconds{5}, k_again_max = std::chrono::minutes{5};
constexpr Duration k_answer_kept = std::chrono::minutes{1};  // thousands of jobs with one image ask once
constexpr const char* k_image_work = "image digest";
constexpr const char* k_registry_lane = "image registries";  // so many are asked at once as one lane has threads

class ImagesConcern : public Concern {
 public:
  explicit ImagesConcern(const Controls& controls) : controls_(controls) {}

  void tick(BootTime now) override {
    if (controls_.world.images == nullptr || wanted_.empty() || !has_lent_host()) return;
    std::vector<std::string> images;
    for (const auto& [image, jobs] : wanted_) images.push_back(image);
    for (const std::string& image : images) look_after(image, now);
  }

  void found(const TrackedJob& job) override { note_wanted(job); }
  void changed(const TrackedJob& job, const job::State&) override { note_wanted(job); }
  void forgotten(const JobId& id) override { drop(id); }

  void shape(const TrackedJob& asking, Question& question) const override {
    std::map<std::string, std::string> problems;
    for (const std::string& image : job::images_without_digest(asking.spec()))
      if (const auto ask = asks_.find(image); ask != asks_.end() && !ask->second.problem.empty()) problems[image] = ask->second.problem;
    if (problems.empty()) return;
    for (sched::HostFacts& host : question.hosts) host.image_problems = problems;
  }

 private:
  struct Ask {  // of an image
    BootTime next{}, answered{};
    Duration pause = k_again_first;
    bool under_way = false;
    std::string digest, problem;
  };

  [[nodiscard]] bool has_lent_host() const {
    return std::ranges::any_of(controls_.fleet.hosts(), [&](const auto& one) { return is_lent_host(controls_.fleet, one.second->provider.name); });
  }

  void note_wanted(const TrackedJob& job) {
    const bool over = job.in<job::Done>() != nullptr;
    std::vector<std::string> images = over ? std::vector<std::string>{} : job::images_without_digest(job.spec());
    const auto known = jobs_.find(job.id().value);
    if (known == jobs_.end() ? images.empty() : known->second == images) return;
    drop(job.id());
    if (images.empty()) return;
    for (const std::string& image : images) wanted_[image].insert(job.id().value);
    jobs_[job.id().value] = std::move(images);
  }

  void drop(const JobId& id) {
    const auto known = jobs_.extract(id.value);
    if (known.empty()) return;
    for (const std::string& image : known.mapped()) {
      std::set<std::string>& jobs = wanted_[image];
      jobs.erase(id.value);
      if (!jobs.empty()) continue;
      wanted_.erase(image);
      if (!asks_[image].under_way && asks_[image].digest.empty()) asks_.erase(image);
    }
  }

  void look_after(const std::string& image, BootTime now) {
    Ask& ask = asks_[image];
    if (ask.under_way) return;
    if (!ask.digest.empty() && now - ask.answered < k_answer_kept) return keep(image, ask.digest);
    if (now < ask.next) return;
    const auto read = job::parse_image_reference(image);
    if (!read) return;
    ask.under_way = controls_.attempts.in_background(
        JobId{*wanted_.at(image).begin()}, std::string(k_image_work) + " " + image, {os::Lane::Kind::bulk, k_registry_lane},
        [&registries = *controls_.world.images, read = *read] { return registries.digest_of(read); },
        [this, image](TrackedJob&, const Result<std::string>& digest) { answered(image, digest); });
  }

  void answered(const std::string& image, const Result<std::string>& digest) {
    const auto found = asks_.find(image);
    if (found == asks_.end()) return;
    Ask& ask = found->second;
    ask.under_way = false;
    ask.answered = controls_.world.clock.boot();
    if (!wanted_.contains(image)) return void(asks_.erase(found));
    if (digest) {
      ask.digest = *digest;
      ask.next = ask.answered + k_answer_kept;
      ask.problem.clear();
      ask.pause = k_again_first;
      return keep(image, *digest);
    }
    const bool told = ask.problem == digest.error().one_line();
    ask.problem = digest.error().one_line();
    ask.next = ask.answered + ask.pause;
    ask.pause = std::min<Duration>(2 * ask.pause, k_again_max);
    if (told) return;
    const std::set<std::string> jobs = wanted_.at(image);
    for (const std::string& id : jobs) place_again(JobId{id});  // so that it is explained
  }

  // Stores the digest with all jobs that want it. Another process may have changed a specification meanwhile.
  void keep(const std::string& image, const std::string& digest) {
    std::vector<std::pair<JobId, job::Spec>> kept;
    const std::set<std::string> jobs = wanted_.at(image);
    registry::JobRecords& records = controls_.world.records;
    const Result<void> stored = records.together([&]() -> Result<void> {
      for (const std::string& id : jobs) {
        Result<registry::Job> row = records.job(JobId{id});
        if (!row) {
          report(row.error(), "while keeping the digest of image " + image);
          continue;
        }
        row->spec.image_digests.try_emplace(image, digest);
        TRY(records.update_spec(row->id, row->spec));
        kept.emplace_back(row->id, std::move(row->spec));
      }
      return {};
    });
    if (!stored) {
      asks_[image].next = controls_.world.clock.boot() + k_again_first;
      asks_[image].digest.clear();
      return report(stored.error(), "while keeping the digest of image " + image);
    }
    for (auto& [id, spec] : kept) {
      TrackedJob* job = controls_.book.find(id);
      if (job == nullptr) continue;
      job->row.spec = std::move(spec);
      controls_.book.note(id, {"image_digest", "borrowed hosts run image " + image + " as " + digest, {}, {}});
      note_wanted(*job);
      place_again(id);
    }
  }

  void place_again(const JobId& id) {
    const TrackedJob* job = controls_.book.find(id);
    if (job != nullptr && job->waits_for_room()) controls_.placement.place_now(*job);
  }

  const Controls controls_;
  std::map<std::string, std::set<std::string>> wanted_;     // image by tag, as written -> jobs
  std::map<std::string, std::vector<std::string>> jobs_;    // the same by job
  std::map<std::string, Ask> asks_;                         // by image
};

}  // namespace

std::unique_ptr<Concern> make_images(const Controls& controls) { return std::make_unique<ImagesConcern>(controls); }

}  // namespace gridctl::control
