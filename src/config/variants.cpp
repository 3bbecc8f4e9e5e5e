// SPDX-License-Identifier: Apache-2.0
// Reads `variants:` of a job file.
#include <algorithm>

#include "base/text.hpp"
#include "config/job_parts.hpp"

namespace gridctl::config {

namespace {
Result<void> read_variant_image(const Fields& fields, const Context& context, const job::Spec& spec,
                                job::Variant& into) {
  std::string image;
  TRY(fields.text("image", image));
  const std::string text = expand_envs(image, spec.envs);
  if (text.empty()) return {};
  into.image.clear();
  into.image_is_archive = false;
  if (text == "none") return {};
  job::Spec holder;
  if (const auto set = set_image(text, context, holder); !set) return fields.error("image", set.error().message);
  into.image = holder.image;
  into.image_is_archive = holder.image_is_archive;
  return {};
}

Result<job::Variant> read_variant(SourceFile& source, const Key& key, const Node& node, const Context& context,
                                  const job::Spec& spec) {
  const std::string path = "variants." + key.text;
  TRY_ASSIGN(const Fields fields, Fields::open(source, node, path, {"image", "setup", "run", "resume_run"}));
  job::Variant variant{key.text, spec.image, spec.image_is_archive, spec.setup, spec.run, spec.resume_run};
  TRY(read_variant_image(fields, context, spec, variant));
  TRY(fields.text("setup", variant.setup));
  TRY(fields.text("run", variant.run));
  TRY(fields.text("resume_run", variant.resume_run));
  // A variant's own command is not resumed by the command of another.
  if (fields.find("run") != nullptr && fields.find("resume_run") == nullptr) variant.resume_run.clear();
  if (trim(variant.run).empty())
    return error_at(source.file, key.at, "key '" + path + ".run': missing, and the job has no 'run' either");
  if (job::vendor_of_variant(variant.kind) && job::gpus_wanted(spec, variant).empty())
    return error_at(source.file, key.at,
                    "key '" + path + "': can never run: resources.accelerators name other vendors' GPUs only");
  return variant;
}
}  // namespace

Result<void> read_variants(const Fields& root, const Context& context, job::Spec& spec) {
  const Node* node = root.find("variants");
  if (node == nullptr) return {};
  if (node->kind != Node::Kind::map || node->keys.empty())
    return root.expected("variants", "a mapping such as {cuda: {image: …, run: …}, rocm: {…}}");
  const std::vector<std::string> kinds(std::begin(job::k_variant_kinds), std::end(job::k_variant_kinds));
  for (std::size_t i = 0; i < node->keys.size(); ++i) {
    const Key& key = node->keys[i];
    if (std::ranges::find(kinds, key.text) == kinds.end())
      return error_at(
          root.source().file, key.at,
          "key 'variants." + excerpt(key.text) + "': expected cuda, rocm, xpu or cpu" + suggestion(key.text, kinds));
    TRY_ASSIGN(job::Variant variant, read_variant(root.source(), key, node->items[i], context, spec));
    spec.variants.push_back(std::move(variant));
  }
  // GPUs come first: a processor does their work a hundred times slower.
  std::stable_partition(spec.variants.begin(), spec.variants.end(),
                        [](const job::Variant& one) { return job::vendor_of_variant(one.kind).has_value(); });
  if (trim(spec.run).empty()) spec.run = spec.variants.front().run;
  const bool on_gpus_only = spec.variants.back().kind != "cpu";
  if (on_gpus_only && spec.resources.gpus.empty()) spec.resources.gpus.emplace_back();
  return {};
}

}  // namespace gridctl::config
