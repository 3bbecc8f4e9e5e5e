// SPDX-License-Identifier: Apache-2.0
#include "agent/engine.hpp"

#include <signal.h>
#include <unistd.h>

#include <map>
#include <utility>
#include <vector>

#include "agent/guest_images.hpp"
#include "agent/process_tree.hpp"
#include "base/text.hpp"
#include "os/clock.hpp"
#include "os/entries.hpp"
#include "os/log.hpp"

namespace gridctl::agent {
namespace {

constexpr Duration k_call_wait = std::chrono::seconds{60};    // a loaded host starts a container in seconds
constexpr Duration k_look_wait = std::chrono::seconds{5};     // it is asked again
constexpr Duration k_pull_wait = std::chrono::hours{1};       // images of 20 GB over slow links
constexpr Duration k_monitor_wait = std::chrono::seconds{2};  // it cleans up behind a container that has ended
constexpr Duration k_monitor_look = std::chrono::milliseconds{20};
constexpr std::string_view k_foreign_root = "value too large for defined data type";  // runc's and crun's, of mkdir there
constexpr std::string_view k_no_registry = "short-name";      // podman's, of a name that its settings find nowhere
constexpr const char* k_guest_name = "gridctl-guest:";
constexpr std::uint64_t k_names_bytes_max = 16u << 20;  // of all names in an engine
constexpr std::size_t k_complaint_bytes = 4000;  // of an engine's error text that reaches people

class ContainerEngine final : public Engine {
 public:
  explicit ContainerEngine(EngineKind kind) : kind_(kind), program_(engine_name(kind)) {}

  Result<std::string> ensure_image(const wire::AttemptSpec& spec, const Path& archive) override {
    if (!archive.empty()) return load(spec, archive);
    if (spec.image.empty()) return make_error(Code::refused, "a container engine needs an image, but none is named");
    TRY_ASSIGN(const bool here, has_image(spec.image));
    if (here) return spec.image;
    const std::string full = full_image_name(spec.image);
    auto pulled = pull(spec.image);
    if (pulled || full == spec.image || pulled.error().message.find(k_no_registry) == std::string::npos)
      return pulled ? Result<std::string>(spec.image) : std::move(pulled).error();
    TRY(pull(full));
    return full;
  }

  Result<std::string> ensure_guest_image(const std::string& name, const GuestImages& images) override {
    TRY_ASSIGN(const std::string before, image_id(name));
    const bool local = registry_of(name) == wire::k_local_images;  // which no registry has
    if (!before.empty() && (local || images.knows(name, before))) return before;
    if (local) return make_error(Code::engine, "this machine has no image " + name);
    TRY_ASSIGN(const Path no_login, images.no_login());
    std::vector<std::string> arguments{"pull", "--quiet"};
    if (kind_ == EngineKind::podman) arguments.insert(arguments.end(), {"--authfile", (no_login / "config.json").string()});
    else arguments.insert(arguments.begin(), {"--config", no_login.string()});
    arguments.push_back(name);
    const std::vector<std::string> gate = kind_ == EngineKind::podman ? images.gate() : std::vector<std::string>{};
    const auto pulled = call(arguments, k_pull_wait, "pull the image " + name + " without a login", gate);
    if (!pulled && !before.empty())
      return make_error(Code::engine, "this machine's owner has an image " + name +
                                          "; guests get it only from its registry, and only if it is public: " +
                                          pulled.error().message);
    TRY(to_void(pulled));
    TRY_ASSIGN(const std::string id, image_id(name));
    if (id.empty()) return make_error(Code::engine, program_ + " pulled the image " + name + " but does not have it");
    images.add(name, id);
    // The owner's programs expect the image that they had.
    if (!before.empty() && id != before && images.id_of(name) == id) TRY(call({"tag", before, name}, k_call_wait, "give the name " + name + " back to its image"));
    return id;
  }

  Result<std::string> ensure_guest_archive(const wire::AttemptSpec& spec, const Path& archive, const GuestImages& images) override {
    const std::string tag = archive_tag(spec);
    TRY_ASSIGN(const os::FileLock lock, images.lock());
    TRY(put_names_back(images));  // of a load that was cut short
    if (const std::string known = images.id_of(tag); !known.empty()) {
      TRY_ASSIGN(const bool here, has_image(known));
      if (here) return known;
    }
    TRY_ASSIGN(const std::string before, names());
    TRY(os::write_file_durably(images.names_file(), before));
    const Result<std::string> id = load_one(archive);
    // This name keeps the image from being removed; nothing trusts it.
    if (id) TRY(call({"tag", *id, k_guest_name + id_digits(*id)}, k_call_wait, "name the loaded image"));
    TRY(put_names_back(images));
    if (id) images.add(tag, *id);
    return id;
  }

  Result<void> launch(const wire::AttemptSpec& spec, const LaunchPlan& plan) override {
    const bool mapped = kind_ == EngineKind::podman || is_rootless_docker();
    const ContainerUser user = mapped ? ContainerUser{} : ContainerUser{::geteuid(), ::getegid()};
    const std::string what = "start the container " + plan.name;
    auto launched = to_void(call(container_arguments(kind_, spec, plan, user), k_call_wait, what));
    if (launched || !spec.root_writable || launched.error().message.find(k_foreign_root) == std::string::npos)
      return launched;
    // The image is in a store shared by several users, and its files belong to none of this container's users.
    os::log(os::LogLevel::warn, "the root of " + plan.name + " is read-only: its image belongs to another user");
    TRY(remove(plan.name));
    wire::AttemptSpec read_only = spec;
    read_only.root_writable = false;
    return to_void(call(container_arguments(kind_, read_only, plan, user), k_call_wait, what));
  }

  bool is_gone(const std::string& name) override {
    const auto running =
        call({"container", "inspect", "--format", "{{.State.Running}}", name}, k_look_wait, "look at " + name);
    return running && is_one_of(trim(*running), {"false"});
  }

  std::vector<os::ProcessId> members(const std::string&, const Path& host_run) override {
    // Init is PID 1 of the container: the kernel ends all other processes with it, and it is gone only after they are.
    const auto init = lock_holder(host_run / "lock");
    return init ? std::vector{*init} : std::vector<os::ProcessId>{};
  }

  bool set_frozen(const std::string& name, bool frozen) override {
    return call({frozen ? "pause" : "unpause", name}, k_call_wait, "pause the container " + name).has_value();
  }

  Result<void> remove(const std::string& name) override {
    TRY(forget(name));
    if (kind_ != EngineKind::podman || !end_monitors(name)) return {};
    return forget(name);
  }

 private:
  Result<std::string> pull(const std::string& image) {
    return call({"pull", "--quiet", image}, k_pull_wait, "pull the image " + image);
  }

  static Result<void> to_void(Result<std::string> result) {
    if (!result) return std::move(result).error();
    return {};
  }

  bool is_rootless_docker() {
    if (::geteuid() == 0) return false;
    const auto options = call({"info", "--format", "{{.SecurityOptions}}"}, k_look_wait, "ask whether it is rootless");
    return options && options->find("name=rootless") != std::string::npos;
  }

  Result<void> forget(const std::string& name) {
    std::vector<std::string> arguments{"rm", "--force", "--volumes"};
    if (kind_ == EngineKind::podman) arguments.insert(arguments.end(), {"--time", "0", "--ignore"});
    arguments.push_back(name);
    auto removed = call(arguments, k_call_wait, "remove the container " + name);
    if (removed || lower(removed.error().message).find("no such container") != std::string::npos) return {};
    return std::move(removed).error();
  }

  // If `podman run` is killed, the monitor that it started (conmon) still creates the container and waits for ever for
  // the signal to start it; podman itself knows of neither. Returns whether there were any.
  static bool end_monitors(const std::string& name) {
    const auto monitors = [&] { return processes_called_with({"-n", name}); };
    const auto wait_while = [](auto holds) {
      for (Duration waited{}; holds() && waited < k_monitor_wait; waited += k_monitor_look)
        os::pause_for(k_monitor_look);
    };
    wait_while([&] { return !monitors().empty(); });
    const std::vector<os::ProcessId> left = monitors();
    signal_each(left, SIGSTOP);  // it starts no others; those of them that lose their parent become its own children
    for (const os::ProcessId& monitor : left)
      wait_while([&] {
        const std::vector<os::ProcessId> started = os::descendants(monitor.pid);
        signal_each(started, SIGKILL);
        return !started.empty();
      });
    signal_each(left, SIGKILL);
    return !left.empty();
  }

  Result<std::string> call(std::vector<std::string> arguments, Duration wait, const std::string& what, const std::vector<std::string>& through = {}) {
    arguments.insert(arguments.begin(), program_);
    arguments.insert(arguments.begin(), through.begin(), through.end());
    os::RunOptions options;
    options.timeout = wait;
    auto outcome = os::run(arguments, options);
    if (!outcome) return std::move(outcome).error().with_context("while trying to " + what);
    if (outcome->status.success()) return std::move(outcome->out);
    const std::string_view complaint = trim(outcome->err);
    const auto tail =
        complaint.size() > k_complaint_bytes ? complaint.substr(complaint.size() - k_complaint_bytes) : complaint;
    return make_error(Code::engine, program_ + " could not " + what + ": " + sanitize(tail));
  }

  Result<bool> has_image(const std::string& image) {
    TRY_ASSIGN(const std::string id, image_id(image));
    return !id.empty();
  }

  // Returns empty if the image is missing.
  Result<std::string> image_id(const std::string& image) {
    auto found = call({"image", "inspect", "--format", "{{.Id}}", image}, k_call_wait, "look for the image " + image);
    if (found) return trim(*found).empty() ? image : std::string(trim(*found));
    if (found.error().code != Code::engine) return std::move(found).error();
    const std::string text = lower(found.error().message);
    if (text.find("no such") != std::string::npos || text.find("not known") != std::string::npos ||
        text.find("not found") != std::string::npos)
      return std::string{};
    return std::move(found).error();
  }

  Result<std::string> load(const wire::AttemptSpec& spec, const Path& archive) {
    const std::string tag = archive_tag(spec);
    TRY_ASSIGN(const bool here, has_image(tag));
    if (here) return tag;
    TRY_ASSIGN(const std::string image, load_archive(archive));
    TRY(call({"tag", image, tag}, k_call_wait, "name the loaded image"));
    return tag;
  }

  // Returns a name derived from the content, so that a second attempt finds the image loaded.
  static std::string archive_tag(const wire::AttemptSpec& spec) {
    return "gridctl-archive:" + to_hex(*spec.image_archive).substr(0, 32);
  }

  Result<std::string> load_archive(const Path& archive) {  // returns the archive's last name
    TRY_ASSIGN(const std::string output,
               call({"load", "--input", archive.string()}, k_pull_wait, "load the image archive"));
    std::string image = loaded_image(output);
    if (image.empty()) return make_error(Code::engine, program_ + " loaded the image archive but named no image");
    return image;
  }

  // Returns the id of the image that the archive's last name refers to.
  Result<std::string> load_one(const Path& archive) {
    TRY_ASSIGN(const std::string image, load_archive(archive));
    TRY_ASSIGN(std::string id, image_id(image));
    if (id.empty()) return make_error(Code::engine, program_ + " loaded the image archive but does not have its image");
    return id;
  }

  static std::string id_digits(std::string_view id) { return std::string(id.substr(id.find(':') + 1).substr(0, 32)); }

  // Returns a line with an id and a name for each name that the engine has.
  Result<std::string> names() {
    return call({"image", "ls", "--no-trunc", "--format", "{{.ID}} {{.Repository}}:{{.Tag}}"}, k_call_wait, "list the images");
  }

  // An archive brings its own names: existing names refer to their images again, and all others are removed.
  Result<void> put_names_back(const GuestImages& images) {
    const auto written = os::read_file(images.names_file(), k_names_bytes_max);
    if (!written && written.error().code == Code::not_found) return {};
    TRY_ASSIGN(const std::string text, written);
    std::map<std::string, std::string> before;
    for (const auto& [name, id] : parse_names(text)) before[name] = id;
    TRY_ASSIGN(const std::string now, names());
    for (const auto& [name, id] : parse_names(now)) {
      const auto was = before.find(name);
      if (was == before.end()) TRY(call({kind_ == EngineKind::podman ? "untag" : "rmi", name}, k_call_wait, "take the name " + name + " away"));
      else if (was->second != id) TRY(call({"tag", was->second, name}, k_call_wait, "give the name " + name + " back to its image"));
    }
    return os::remove_file(images.names_file());
  }

  static std::vector<std::pair<std::string, std::string>> parse_names(const std::string& text) {
    std::vector<std::pair<std::string, std::string>> all;
    for (const std::string& line : split_lines(text)) {
      const std::size_t cut = line.find(' ');
      if (cut == std::string::npos || line.find("<none>") != std::string::npos || line.find(k_guest_name) != std::string::npos) continue;
      all.emplace_back(line.substr(cut + 1), line.substr(0, cut));
    }
    return all;
  }

  EngineKind kind_;
  std::string program_;
};

}  // namespace

std::unique_ptr<Engine> make_container_engine(EngineKind kind) { return std::make_unique<ContainerEngine>(kind); }

}  // namespace gridctl::agent
