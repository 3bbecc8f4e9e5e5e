# Packages, made by scripts/package: a .deb, and a tarball that can be unpacked anywhere.
set(CPACK_PACKAGE_NAME gridctl)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The gridctl developers <gridctl@users.noreply.github.com>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Run jobs on your own GPU hosts and finish them when a host dies")
set(CPACK_PACKAGE_DESCRIPTION "gridctl runs jobs on your own hosts over SSH, collects and verifies their checkpoints, and continues them on
another host when one dies. One binary, no server, nothing to install on the hosts.")
set(CPACK_RESOURCE_FILE_LICENSE ${CMAKE_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_SOURCE_DIR}/build/package)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # libc and OpenSSL, in the versions that are needed
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libcurl4 (>= 7.87)")  # loaded with the first request
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openssh-client, ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "man-db, bash-completion")

string(TOLOWER ${CMAKE_SYSTEM_NAME} system)
set(CPACK_ARCHIVE_FILE_NAME gridctl-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_FILE_NAME ${CPACK_ARCHIVE_FILE_NAME})
include(CPack)
