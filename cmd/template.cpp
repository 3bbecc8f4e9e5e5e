// SPDX-License-Identifier: Apache-2.0
// Implements gridctl template: distributed trainings as starting points.
#include "cmd/commands.hpp"
#include "cmd/template_files.hpp"
#include "os/files.hpp"
#include "ui/table.hpp"

namespace gridctl::cmd {

namespace template_of {
namespace {
std::string files_json(const Template& one, bool texts) {
  return json_list(one.files, [&](const TemplateFile& file) {
    JsonObject json;
    json("name", file.name);
    if (texts) json("text", file.text);
    return json.text();
  });
}

std::string json_of(const Template& one, bool texts) {
  return JsonObject()("name", one.name)("summary", one.summary).raw("files", files_json(one, texts)).text();
}

Result<int> ls(Context& context, const Parsed&) {
  if (context.json) {
    context.print_line(json_list(templates(), [](const Template& one) { return json_of(one, false); }));
    return 0;
  }
  ui::Table table({{.title = "NAME"}, {.title = "WHAT", .shrinks = true}});
  for (const Template& one : templates()) table.add({one.name, one.summary}, {ui::Paint::bold});
  return context.print(table.render(context.columns_out(), context.out_style));
}

Result<int> show(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const Template* one, template_named(parsed.positionals[0]));
  if (context.json) return context.print_line(json_of(*one, true));
  for (const TemplateFile& file : one->files) {
    context.print_line("==> " + std::string(file.name) + " <==");
    context.print(file.text);
    if (&file != &one->files.back()) context.print_line("");
  }
  return 0;
}

// Writes all files or none: an existing file belongs to somebody.
Result<int> make(Context& context, const Parsed& parsed) {
  TRY_ASSIGN(const Template* one, template_named(parsed.positionals[0]));
  const os::Path folder = parsed.positionals.size() > 1 ? parsed.positionals[1] : one->name;
  for (const TemplateFile& file : one->files)
    if (os::exists(folder / file.name))
      return make_error(Code::refused, (folder / file.name).string() + " exists already",
                        "gridctl template new " + one->name + " OTHER_DIR");
  TRY(os::make_directories(folder, 0755));
  for (const TemplateFile& file : one->files) TRY(os::write_file_atomically(folder / file.name, file.text, 0644));
  if (context.json)
    return context.print_line(JsonObject()("directory", folder.string()).raw("files", files_json(*one, false)).text());
  for (const TemplateFile& file : one->files) context.print_line((folder / file.name).string());
  return context.note("gridctl job submit --dry-run " + (folder / "job.yaml").string() + " shows where it would run");
}
}  // namespace
}  // namespace template_of

const Command k_template_ls{.name = "template ls",
                            .summary = "what there is to begin with",
                            .examples = {{"List the templates", "gridctl template ls"}},
                            .description = "Lists the job files with programs that gridctl carries: distributed training "
                                           "jobs that save checkpoints and survive the loss of a host.",
                            .run = template_of::ls};

const Command k_template_show{.name = "template show",
                              .summary = "the files of a template",
                              .examples = {{"What a template holds", "gridctl template show fsdp"}},
                              .description = "Prints the files of a template, as 'gridctl template new' writes them.",
                              .positionals = {{"NAME"}},
                              .exit_codes = {3},
                              .run = template_of::show};

const Command k_template_new{
    .name = "template new",
    .summary = "write a template's files into a folder",
    .examples = {{"Begin with DistributedDataParallel, in the folder ddp", "gridctl template new torchrun ddp"},
                 {"And try where it would run", "cd ddp && gridctl job submit --dry-run job.yaml"}},
    .description =
        "Writes a job file, a small program that runs as it is, on CPUs too, and where it helps a module that saves "
        "and "
        "loads model, optimizer, scheduler, step and random numbers whole or not at all. Replace the example's model "
        "with yours. Nothing is overwritten.",
    .positionals = {{"NAME"}, {"DIR", Completion::directory, false}},
    .exit_codes = {3, 5, 6},
    .run = template_of::make};

}  // namespace gridctl::cmd
