# Run at installation, for a `daemon`: its unit and its configuration file, from `source`, by way of the folder `written`.
# Below /usr the system's own folders are meant, as the file system hierarchy has them; elsewhere those of the prefix.
set(TACTUS_BIN ${CMAKE_INSTALL_PREFIX}/bin)
set(TACTUS_ETC ${CMAKE_INSTALL_PREFIX}/etc)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(TACTUS_ETC /etc)
endif()
configure_file(${source}/systemd/tactus-${daemon}.service.in ${written}/tactus-${daemon}.service @ONLY)
file(INSTALL DESTINATION ${CMAKE_INSTALL_PREFIX}/lib/systemd/system TYPE FILE FILES ${written}/tactus-${daemon}.service)
# One that is there was perhaps edited.
if(NOT EXISTS $ENV{DESTDIR}${TACTUS_ETC}/tactus/${daemon}.conf)
  file(INSTALL DESTINATION ${TACTUS_ETC}/tactus TYPE FILE FILES ${source}/etc/${daemon}.conf)
endif()
