// Finds the sites where rows travel between ranks, and what could travel there.
#include <charconv>

#include "nacre/base/error.h"
#include "nacre/dfg/distribute.h"

namespace nacre {
std::string rank_site_name(const RankSite& site) {
  return "layer " + std::to_string(site.layer) + (site.backward ? " backward" : " forward");
}

RankSite parse_rank_site(const std::string& name) {
  const std::string_view before = "layer ";
  RankSite site;
  if (name.starts_with(before)) {
    const char* end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + before.size(), end, site.layer);
    site.backward = std::string_view(rest, static_cast<size_t>(end - rest)) == " backward";
    if (error == std::errc() && rank_site_name(site) == name) return site;
  }
  throw UserError("halo_rows", "'" + name + "' is no place where rows travel", "write for example 'layer 0 forward'");
}

HaloRows RankPlacement::at(const RankSite& site) const {
  const auto named = sites.find(site);
  return named == sites.end() ? usual : named->second;
}

std::string placement_text(const RankPlacement& placement) {
  std::string text = halo_rows_name(placement.usual);
  bool first = true;
  for (const auto& [site, rows] : placement.sites) {
    if (rows == placement.usual) continue;
    text += (first ? ", but " : ", ") + halo_rows_name(rows) + " at " + rank_site_name(site);
    first = false;
  }
  return text;
}

NodeVector<char> needed_forward(const Dfg& dfg) {
  NodeVector<char> needed(dfg, 0);
  for (const auto& [name, node] : dfg.outputs()) {
    if (!name.starts_with("grad:")) needed[node] = 1;
  }
  for (const auto& [name, node] : dfg.updates()) needed[node] = 1;
  for (NodeRef i = dfg.size() - 1; i >= 0; --i) {
    if (!needed[i]) continue;
    for (const NodeRef in : dfg[i].inputs) needed[in] = 1;
  }
  return needed;
}

std::map<RankSite, int64_t> travelling_columns(const Dfg& distributed) {
  const NodeVector<char> forward = needed_forward(distributed);
  std::map<RankSite, int64_t> columns;
  for (NodeRef i = 0; i < distributed.size(); ++i) {
    const Node& node = distributed[i];
    if (node.op != Op::exchange && node.op != Op::exchange_add) continue;
    columns[{node.type.space.layer, forward[i] == 0}] += node.type.row_size();
  }
  return columns;
}

std::vector<SiteColumns> rank_sites(const Dfg& dfg) {
  std::map<RankSite, std::map<HaloRows, int64_t>> found;
  for (const HaloRows rows : halo_choices({})) {
    for (const auto& [site, columns] : travelling_columns(distribute(dfg, {rows, {}}))) found[site][rows] = columns;
  }
  std::vector<SiteColumns> sites;
  for (auto& [site, columns] : found) {
    for (const HaloRows rows : halo_choices({})) columns.try_emplace(rows, 0);
    sites.push_back({site, std::move(columns)});
  }
  return sites;
}

}  // namespace nacre
