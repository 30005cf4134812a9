# Debian packages, one a component: `cpack -G DEB` in the build's folder, behind its target `installed`. scripts/release
# does all of it.
set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON)  # configuration files are outside of the prefix
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_NAME tactus)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_THREADS 0)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_ENABLE_COMPONENT_DEPENDS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SOURCE tactus)
set(CPACK_DEBIAN_PACKAGE_SECTION net)

# Whoever builds them is their maintainer, as Debian's tools have it.
set(TACTUS_MAINTAINER "Tactus maintainers <tactus@localhost>")
if(NOT "$ENV{DEBFULLNAME}" STREQUAL "" AND NOT "$ENV{DEBEMAIL}" STREQUAL "")
  set(TACTUS_MAINTAINER "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(CPACK_PACKAGE_CONTACT ${TACTUS_MAINTAINER})

# tactus_package(component package SECTION x DESCRIPTION text [COMPONENTS ...] [DEPENDS ...] [RECOMMENDS ...] [SUGGESTS ...] [ALL])
#   COMPONENTS  whose packages it needs in its own version
#   ALL         the same for every architecture
#   DAEMON      it has a unit, a user and a folder of state; what is said where an upgrade starts it anew
function(tactus_package component package)
  cmake_parse_arguments(arg "ALL" "SECTION;DESCRIPTION;DAEMON" "COMPONENTS;DEPENDS;RECOMMENDS;SUGGESTS" ${ARGN})
  string(TOUPPER ${component} upper)
  set(written ${installed}/${component}/package)
  foreach(kind DEPENDS RECOMMENDS SUGGESTS)
    list(JOIN arg_${kind} ", " list)
    set(CPACK_DEBIAN_${upper}_PACKAGE_${kind} ${list} PARENT_SCOPE)
  endforeach()
  set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package} PARENT_SCOPE)
  set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${arg_SECTION} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION ${arg_DESCRIPTION} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DEPENDS ${arg_COMPONENTS} PARENT_SCOPE)
  if(arg_ALL)
    set(CPACK_DEBIAN_${upper}_PACKAGE_ARCHITECTURE all PARENT_SCOPE)
    set(CPACK_DEBIAN_${upper}_PACKAGE_SHLIBDEPS OFF PARENT_SCOPE)
  endif()
  if(arg_DAEMON)
    set(DAEMON ${component})
    set(RESTART ${arg_DAEMON})
    set(control)
    foreach(script postinst prerm postrm conffiles)
      configure_file(deploy/debian/daemon.${script}.in ${written}/${script} @ONLY)
      list(APPEND control ${written}/${script})
    endforeach()
    set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${control} PARENT_SCOPE)
  endif()
  # What a package of Debian's has to have.
  file(READ CHANGELOG.md changes)
  string(REGEX MATCH "## ${PROJECT_VERSION}[^\n]*" told "${changes}")
  if(NOT told)
    message(FATAL_ERROR "packages: CHANGELOG.md has no section of ${PROJECT_VERSION}")
  endif()
  set(PACKAGE ${package})
  string(TIMESTAMP NOW "%a, %d %b %Y %H:%M:%S +0000" UTC)  # of SOURCE_DATE_EPOCH, where that is set
  configure_file(deploy/debian/changelog.in ${written}/changelog @ONLY)
  execute_process(COMMAND gzip -9nf ${written}/changelog COMMAND_ERROR_IS_FATAL ANY)
  set(here ${CMAKE_INSTALL_DATADIR}/doc/${package})
  install(FILES deploy/debian/copyright ${written}/changelog.gz DESTINATION ${here} COMPONENT ${component})
  configure_file(deploy/debian/lintian-overrides.in ${written}/lintian-overrides @ONLY)
  install(FILES ${written}/lintian-overrides
    DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME ${package} COMPONENT ${component})
endfunction()

tactus_package(coordinator tactus-coordinator SECTION net DAEMON "jobs train on meanwhile" DEPENDS adduser
  SUGGESTS tactus-monitoring
  DESCRIPTION "coordinator of Tactus, which trains models on unequal GPUs
Holds the jobs and the nodes, watches how fast every worker computes, and
gives each the share of samples that takes all of them equally long. Serves
gRPC, a status page, and metrics for Prometheus.")
tactus_package(agent tactus-agent SECTION net COMPONENTS worker
  DAEMON "its jobs are suspended at the end of a round, within drain-deadline, and go on from there" DEPENDS adduser
  DESCRIPTION "agent of Tactus, which offers a node's devices
Dials the coordinator, and runs workers on the GPUs or processors of its node
as that decides.")
# Without OpenBLAS libtorch's matrix products are 25 times slower.
tactus_package(worker tactus-worker SECTION science DEPENDS "libopenblas0-pthread | libopenblas0"
  DESCRIPTION "worker of Tactus: trains models with libtorch
The program that an agent starts, one a device: reads data, runs a TorchScript
model or a built-in one forward and backward, and combines with the others.")
tactus_package(client tactus SECTION science RECOMMENDS tactus-coordinator tactus-agent SUGGESTS tactus-doc
  DESCRIPTION "command line of Tactus, which trains models on unequal GPUs
Submits jobs, follows and explains them, fetches what was trained. With the
coordinator and an agent installed, `tactus demo` and `tactus run` train on
this machine alone. Completion for bash, zsh and fish.")
tactus_package(dev libtactus-dev SECTION libdevel
  DEPENDS libgrpc++-dev libprotobuf-dev libabsl-dev libspdlog-dev libssl-dev protobuf-compiler-grpc
  SUGGESTS tactus-doc
  DESCRIPTION "client library of Tactus for C++
One method for each call of the API of a coordinator, with deadlines, retries
and transfers that are checked. With the schema as .proto, and files for
find_package(tactus) of CMake.")
tactus_package(monitoring tactus-monitoring ALL SECTION net SUGGESTS prometheus grafana
  DESCRIPTION "dashboards, rules and alerts of Tactus
Four dashboards for Grafana, with recording rules and alerts for Prometheus,
and a configuration of both to begin with. Each alert has a runbook in the
package tactus-doc.")
tactus_package(doc tactus-doc ALL SECTION doc
  DESCRIPTION "documents and examples of Tactus
A tutorial, the operation of a fleet, runbooks of all alerts, the reference of
job files and options, and examples of jobs and clients.")

set(CPACK_COMPONENTS_ALL coordinator agent worker client dev monitoring doc)
include(CPack)
