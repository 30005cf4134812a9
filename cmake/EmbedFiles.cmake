# Writes the files FILES of FOLDER into OUTPUT, a .cc that defines page::StaticFiles(): see
# coordinator/page/static_files.h.
set(TYPE_html "text/html; charset=utf-8")
set(TYPE_css "text/css; charset=utf-8")
set(TYPE_js "text/javascript; charset=utf-8")
set(TYPE_svg "image/svg+xml")
set(entries "")
foreach(file ${FILES})
  file(READ ${FOLDER}/${file} content)
  cmake_path(GET file EXTENSION LAST_ONLY extension)
  string(SUBSTRING ${extension} 1 -1 extension)
  if(NOT DEFINED TYPE_${extension})
    message(FATAL_ERROR "${file}: of which type is it?")
  endif()
  string(APPEND entries "    {\"/${file}\", \"${TYPE_${extension}}\", R\"tactus(${content})tactus\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"coordinator/page/static_files.h\"

namespace tactus::page {

const std::vector<StaticFile>& StaticFiles() {
  static const std::vector<StaticFile> files = {
${entries}  };
  return files;
}

}  // namespace tactus::page
")
