// What lies where in a state folder, and in a backup of one, which is laid out alike.

#pragma once

namespace tactus::service {

inline constexpr char kDatabaseName[] = "coordinator.db";
inline constexpr char kBlobsName[] = "blobs";      // see BlobPath
inline constexpr char kUploadsName[] = "uploads";  // see UploadAccounts
// A copy of the database, while one is made or looked through; whoever has it has the CopySlot.
inline constexpr char kCopyName[] = "copy.tmp";

}  // namespace tactus::service
