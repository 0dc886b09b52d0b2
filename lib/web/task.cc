// SPDX-License-Identifier: Apache-2.0
#include "web/task.h"

#include <algorithm>
#include <string>

#include "error.h"

namespace kjudge {
namespace {

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

enum class LineKind { blank, heading, fence, indented, table, item, text };

LineKind kind_of(std::string_view line) {
  if (trimmed(line).empty()) return LineKind::blank;
  if (line.starts_with("    ") || line.starts_with('\t')) return LineKind::indented;
  if (line.starts_with("```")) return LineKind::fence;
  const auto hashes = line.find_first_not_of('#');
  if (hashes > 0 && hashes <= 6 && line.substr(hashes, 1) == " ") return LineKind::heading;
  if (line.starts_with('|') && trimmed(line).ends_with('|')) return LineKind::table;
  return line.starts_with("- ") || line.starts_with("* ") ? LineKind::item : LineKind::text;
}

// A mark without its partner is text.
Html with_marks(std::string_view text) {
  Html line;
  while (!text.empty()) {
    const auto at = std::min(text.find('`'), text.find("**"));
    const std::string_view mark = at == text.npos ? "" : text[at] == '`' ? "`" : "**";
    const auto end = mark.empty() ? text.npos : text.find(mark, at + mark.size());
    if (end == text.npos) {
      line.add(text);
      break;
    }
    line.add(text.substr(0, at));
    const std::string_view marked = text.substr(at + mark.size(), end - at - mark.size());
    line.add(mark == "`" ? element("code", {}, marked) : element("strong", {}, marked));
    text.remove_prefix(end + mark.size());
  }
  return line;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  line = trimmed(line);
  line.remove_prefix(1);
  std::vector<std::string_view> cells;
  while (!line.empty()) {
    const auto end = std::min(line.find('|'), line.size());
    cells.push_back(trimmed(line.substr(0, end)));
    line.remove_prefix(std::min(end + 1, line.size()));
  }
  return cells;
}

bool is_rule(std::string_view line) {
  return line.find('-') != line.npos && line.find_first_not_of("|-: ") == line.npos;
}

Html task_table(const std::vector<std::string_view>& lines) {
  const bool headed = lines.size() > 1 && is_rule(lines[1]);
  Html head("thead", {}), body("tbody", {});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (headed && i == 1) continue;
    Html row("tr", {});
    for (const std::string_view cell : cells_of(lines[i])) {
      // A heading without text would say nothing of its column.
      row.add(headed && i == 0 && !cell.empty()
                  ? element("th", {{"scope", "col"}}, with_marks(cell))
                  : element("td", {}, with_marks(cell)));
    }
    (headed && i == 0 ? head : body).add(std::move(row));
  }
  Html table("table", {});
  if (headed) table.add(std::move(head));
  table.add(std::move(body));
  return element("div", {{"class", "scroll"}, {"tabindex", "0"}}, std::move(table));
}

class TaskReader {
 public:
  explicit TaskReader(std::string_view text) : lines_(lines_of(text)) {}

  std::vector<Html> read() {
    std::vector<Html> parts;
    while (at_ < lines_.size()) {
      const std::string_view line = lines_[at_];
      switch (kind_of(line)) {
        case LineKind::blank:
          ++at_;
          break;
        case LineKind::heading:
          parts.push_back(element("h3", {}, with_marks(trimmed(line.substr(line.find(' '))))));
          ++at_;
          break;
        case LineKind::fence:
          parts.push_back(code(fenced()));
          break;
        case LineKind::indented:
          parts.push_back(code(indented()));
          break;
        case LineKind::table:
          parts.push_back(task_table(take(LineKind::table)));
          break;
        case LineKind::item:
          parts.push_back(items());
          break;
        case LineKind::text:
          parts.push_back(element("p", {}, with_marks(joined(take(LineKind::text)))));
          break;
      }
    }
    return parts;
  }

 private:
  std::vector<std::string_view> take(LineKind kind) {
    std::vector<std::string_view> taken;
    while (at_ < lines_.size() && kind_of(lines_[at_]) == kind) taken.push_back(lines_[at_++]);
    return taken;
  }

  static std::string joined(const std::vector<std::string_view>& lines) {
    std::string text;
    for (const std::string_view line : lines) text += cat(text.empty() ? "" : "\n", line);
    return text;
  }

  static Html code(const std::string& text) {
    return element("div", {{"class", "scroll"}, {"tabindex", "0"}}, element("pre", {}, text));
  }

  std::string fenced() {
    std::string text;
    for (++at_; at_ < lines_.size() && !lines_[at_].starts_with("```"); ++at_) {
      text += cat(lines_[at_], "\n");
    }
    ++at_;
    return text;
  }

  std::string indented() {
    std::string text;
    for (const std::string_view line : take(LineKind::indented)) {
      text += cat(line.substr(line.starts_with('\t') ? 1 : 4), "\n");
    }
    return text;
  }

  // Lines below an item that are indented belong to it.
  Html items() {
    Html list("ul", {});
    while (at_ < lines_.size() && kind_of(lines_[at_]) == LineKind::item) {
      std::string text(lines_[at_++].substr(2));
      while (at_ < lines_.size() && lines_[at_].starts_with("  ") &&
             !trimmed(lines_[at_]).empty()) {
        text += cat("\n", trimmed(lines_[at_++]));
      }
      list.add(element("li", {}, with_marks(text)));
    }
    return list;
  }

  std::vector<std::string_view> lines_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<Html> task_elements(std::string_view markdown) { return TaskReader(markdown).read(); }

}  // namespace kjudge
