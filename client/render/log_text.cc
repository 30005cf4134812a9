#include "client/render/log_text.h"

namespace tactus::client {

std::string LogText::Show(const v1::LogEntry& entry) {
  std::string out;
  if (open_ && open_rank_ != entry.rank()) {
    out += '\n';
    open_ = false;
  }
  for (const char c : entry.text()) {
    if (!open_ && ranked_) out += "[" + std::to_string(entry.rank()) + "] ";
    open_ = c != '\n';
    const auto byte = static_cast<unsigned char>(c);
    const bool steers = (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f;
    out += steers ? ' ' : c;
  }
  open_rank_ = entry.rank();
  return out;
}

}  // namespace tactus::client
