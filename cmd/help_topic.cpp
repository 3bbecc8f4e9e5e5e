// SPDX-License-Identifier: Apache-2.0
// Implements `gridctl help training`: manual pages as plain text, from the roff that manual_pages() writes.

#include "base/text.hpp"
#include "cmd/help.hpp"
#include "ui/width.hpp"

namespace gridctl::cmd {

namespace {
constexpr std::size_t k_indent = 2;

// "\-" means '-', "\e" a backslash; words in quotes of a request are one.
std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      if (text[i] != '"') out += text[i];
      continue;
    }
    ++i;
    if (text[i] == 'e') out += '\\';
    else if (text[i] == 'f') i += i + 1 < text.size() ? 1 : 0;  // a font: "\fB"
    else if (text[i] != '&') out += text[i];
  }
  return out;
}

// Gathers words into paragraphs; requests end them.
class Page {
 public:
  explicit Page(std::size_t columns) : columns_(columns) {}

  void line(std::string_view text) {
    if (!text.starts_with('.')) return words(plain(text));
    const std::size_t blank = text.find(' ');
    const std::string request(text.substr(1, blank == std::string_view::npos ? blank : blank - 1));
    const std::string rest = blank == std::string_view::npos ? "" : plain(text.substr(blank + 1));
    if (request == "TH" || request.starts_with('\\')) return;
    if (request == "SH" || request == "SS") {
      end_paragraph();
      out_ += (out_.empty() ? "" : "\n") + (request == "SH" ? rest : "  " + rest) + "\n";
    } else if (request == "nf" || request == "fi") {
      end_paragraph();
      as_written_ = request == "nf";
    } else if (request == "B" || request == "I" || request == "BR" || request == "BI" || request == "IR") {
      words(rest);
    } else {
      end_paragraph();
      if (request == "PP" && !out_.ends_with("\n\n")) out_ += "\n";
    }
  }

  std::string text() {
    end_paragraph();
    return std::move(out_);
  }

 private:
  void words(const std::string& text) {
    if (as_written_) out_ += std::string(2 * k_indent, ' ') + text + "\n";
    else pending_ += (pending_.empty() ? "" : " ") + text;
  }
  void end_paragraph() {
    if (pending_.empty()) return;
    for (const std::string& line : ui::wrap(pending_, columns_ - k_indent))
      out_ += std::string(k_indent, ' ') + line + "\n";
    pending_.clear();
  }

  std::size_t columns_;
  bool as_written_ = false;
  std::string pending_, out_;
};
}  // namespace

std::optional<std::string> help_of_topic(std::string_view topic, std::size_t columns) {
  const std::size_t width = help_width(columns);
  for (const auto& [name, page_text] : manual_pages()) {
    if (name != "gridctl-" + std::string(topic) + ".7") continue;
    Page page(width);
    for (const std::string& line : split_lines(page_text)) page.line(line);
    return page.text();
  }
  return std::nullopt;
}

}  // namespace gridctl::cmd
