# What is installed, by component (docs/decisions/0082): `cmake --install BUILD --component client --prefix /usr`.
# Packages.cmake makes a package of each. Everything that has to be made for it is made by the target `installed`.
include(GNUInstallDirs)
set(installed ${PROJECT_BINARY_DIR}/installed)
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# Programs. Users call three of them; a worker is started by its agent, which looks for it beside itself and there. On a
# GPU host it is installed alone, with the way to a libtorch that is not in the system's folders.
set_target_properties(tactus-worker PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS tactus-worker RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/tactus COMPONENT worker)
if(NOT TACTUS_CONTROL_PLANE)
  return()
endif()
install(TARGETS tactus-coordinator RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT coordinator)
install(TARGETS tactus-agent RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT agent)
install(TARGETS tactus RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT client)

# Units and configuration files, which name where the programs were put.
foreach(daemon coordinator agent)
  install(CODE "
    set(source [==[${PROJECT_SOURCE_DIR}/deploy]==])
    set(written [==[${installed}]==])
    set(daemon ${daemon})
    include([==[${PROJECT_SOURCE_DIR}/cmake/InstallDaemon.cmake]==])" COMPONENT ${daemon})
endforeach()

# Manual pages and completion, from the words of --help.
find_program(TACTUS_HELP2MAN help2man)
set(pages)
if(TACTUS_HELP2MAN)
  foreach(daemon coordinator agent)
    set(page ${installed}/${daemon}/tactus-${daemon}.1.gz)
    add_custom_command(
      OUTPUT ${page}
      COMMAND ${PROJECT_SOURCE_DIR}/cmake/daemon-page ${TACTUS_HELP2MAN} $<TARGET_FILE:tactus-${daemon}> ${page}
      DEPENDS tactus-${daemon} ${PROJECT_SOURCE_DIR}/cmake/daemon-page
      COMMENT "Writing the manual page of tactus-${daemon}" VERBATIM)
    list(APPEND pages ${page})
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT ${daemon})
  endforeach()
else()
  message(STATUS "install: the daemons' manual pages need help2man, which was not found, so there are none")
endif()
set(client_pages ${installed}/client/pages)
add_custom_command(
  OUTPUT ${installed}/client/tactus.bash
  COMMAND sh -ec "rm -rf '${client_pages}'; mkdir -p '${client_pages}'; $<TARGET_FILE:tactus> man --to '${client_pages}' > '${client_pages}.list'; gzip -9n '${client_pages}'/*.1; for shell in zsh fish bash; do $<TARGET_FILE:tactus> completion $shell > '${installed}/client/tactus.'$shell; done"
  DEPENDS tactus
  COMMENT "Writing the client's manual pages and completion" VERBATIM)
install(DIRECTORY ${client_pages}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT client)
install(FILES ${installed}/client/tactus.bash
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tactus COMPONENT client)
install(FILES ${installed}/client/tactus.zsh
  DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _tactus COMPONENT client)
install(FILES ${installed}/client/tactus.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT client)

# The client library for programs elsewhere: one archive of what client/api needs of this tree, and the headers that its
# own reach. find_package(tactus) finds it.
add_library(tactus_client STATIC EXCLUDE_FROM_ALL
  $<TARGET_OBJECTS:tactus_api_client> $<TARGET_OBJECTS:tactus_identity> $<TARGET_OBJECTS:tactus_runtime> $<TARGET_OBJECTS:tactus_proto>)
set_target_properties(tactus_client PROPERTIES LINKER_LANGUAGE CXX ARCHIVE_OUTPUT_DIRECTORY ${installed}/dev)
add_custom_command(TARGET tactus_client POST_BUILD
  COMMAND ${CMAKE_STRIP} --strip-debug --enable-deterministic-archives $<TARGET_FILE:tactus_client> VERBATIM)
install(FILES $<TARGET_FILE:tactus_client> DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
set(headers_at ${CMAKE_INSTALL_INCLUDEDIR}/tactus)
foreach(header base/rng base/time client/api/cancellation client/api/client client/api/options identity/certificate
    identity/credentials identity/name runtime/retry runtime/status threads/mutex)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${PROJECT_SOURCE_DIR}/${header}.h DESTINATION ${headers_at}/${folder} COMPONENT dev)
endforeach()
install(DIRECTORY ${PROJECT_BINARY_DIR}/generated/tactus/v1 DESTINATION ${headers_at}/tactus COMPONENT dev
  FILES_MATCHING PATTERN "*.h")
foreach(folder tactus/v1 google/rpc)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/proto/${folder}/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tactus/proto/${folder}
    COMPONENT dev FILES_MATCHING PATTERN "*.proto")
endforeach()
include(CMakePackageConfigHelpers)
set(config_at ${CMAKE_INSTALL_LIBDIR}/cmake/tactus)
configure_package_config_file(cmake/tactus-config.cmake.in ${installed}/dev/tactus-config.cmake
  INSTALL_DESTINATION ${config_at} PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${installed}/dev/tactus-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${installed}/dev/tactus-config.cmake ${installed}/dev/tactus-config-version.cmake
  DESTINATION ${config_at} COMPONENT dev)

# What Prometheus and Grafana are given, and what people read.
install(DIRECTORY dashboards/ DESTINATION ${CMAKE_INSTALL_DATADIR}/tactus/dashboards COMPONENT monitoring
  FILES_MATCHING PATTERN "*.json" PATTERN "*.yml")
install(DIRECTORY deploy/prometheus deploy/grafana DESTINATION ${CMAKE_INSTALL_DATADIR}/tactus COMPONENT monitoring)
install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs COMPONENT doc)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc
  PATTERN "CMakeLists.txt" EXCLUDE PATTERN "__pycache__" EXCLUDE)

add_custom_target(installed ALL
  DEPENDS tactus tactus-coordinator tactus-agent tactus-worker tactus_client ${installed}/client/tactus.bash ${pages})

include(Packages)
