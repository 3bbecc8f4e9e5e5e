# The program itself. Every command is a source file here.
foreach(library libssh2 openssl sqlite3 libuv yaml-cpp)
  string(TOUPPER ${library} key)
  string(REPLACE "SQLITE3" "SQLITE" key ${key})
  string(REPLACE "YAML-CPP" "YAML" key ${key})
  execute_process(COMMAND ${PKG_CONFIG_EXECUTABLE} --modversion ${library} OUTPUT_VARIABLE version
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT version)
    set(version "unknown")
  endif()
  list(APPEND built_with GRIDCTL_BUILT_${key}="${version}")
endforeach()

add_executable(gridctl
  budget.cpp checkpoint_diff.cpp checkpoint_ls.cpp checkpoint_lookup.cpp checkpoint_marks.cpp checkpoint_pull.cpp checkpoint_push.cpp checkpoint_remote.cpp checkpoint_show.cpp checkpoint_verify.cpp
  cli.cpp commands.cpp complete.cpp completion_scripts.cpp completions.cpp context.cpp deadline_view.cpp daemon_control.cpp daemon_run.cpp
  doctor.cpp doctor_here.cpp doctor_hosts.cpp drill.cpp findings.cpp follow.cpp help.cpp job_cancel.cpp job_drill.cpp job_events.cpp job_explain.cpp job_logs.cpp job_ls.cpp job_plan.cpp job_resume.cpp
  job_show.cpp job_submit.cpp job_watch.cpp key_files.cpp key_show.cpp log_printer.cpp log_reader.cpp manual.cpp manual_query.cpp outcome.cpp provider_bench.cpp provider_check.cpp provider_drain.cpp
  provider_facts.cpp provider_landmark.cpp provider_links.cpp provider_ls.cpp provider_price.cpp provider_register.cpp provider_rescan.cpp provider_rm.cpp provider_show.cpp
  sim.cpp sim_question.cpp sim_report.cpp store_add.cpp store_check.cpp store_ls.cpp store_places.cpp store_rm.cpp store_sync.cpp submission.cpp template.cpp template_files.cpp version.cpp)
# The files of templates/ become a table in the program.
set(template_rows ${CMAKE_BINARY_DIR}/generated/template_rows.inc)
file(GLOB template_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/templates/*/*.yaml ${CMAKE_SOURCE_DIR}/templates/*/*.py
     ${CMAKE_SOURCE_DIR}/templates/*.py)
add_custom_command(OUTPUT ${template_rows}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_SOURCE_DIR}/templates -DOUT=${template_rows} -P ${CMAKE_SOURCE_DIR}/templates/templates.cmake
  DEPENDS ${template_files} ${CMAKE_SOURCE_DIR}/templates/templates.cmake COMMENT "Collecting the templates" VERBATIM)
set_source_files_properties(template_files.cpp PROPERTIES OBJECT_DEPENDS ${template_rows})
# The argument parser is only in cli.cpp.
gridctl_compile_together(gridctl APART cli.cpp sim.cpp sim_report.cpp ALONE sim_question.cpp)
gridctl_optimize(gridctl cmd)
target_include_directories(gridctl PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_definitions(gridctl PRIVATE GRIDCTL_VERSION="${PROJECT_VERSION}" ${built_with})
target_link_libraries(gridctl PRIVATE gridctl_flags gridctl_sanitize)
foreach(room ui forecast control registry transfer store probe config sched job ssh db crypto wire os base)
  if(TARGET gridctl_${room})
    target_link_libraries(gridctl PRIVATE gridctl_${room})
  endif()
endforeach()

include(GNUInstallDirs)
install(TARGETS gridctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/man/*.[1-8])
foreach(page ${pages})
  string(REGEX MATCH "[1-8]$" section ${page})
  install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
# The specifications are read as they are written.
install(FILES ${CMAKE_SOURCE_DIR}/man/gridctl-agent.7.md ${CMAKE_SOURCE_DIR}/man/gridctl-job.5.md
              ${CMAKE_SOURCE_DIR}/man/gridctl-sim.5.md ${CMAKE_SOURCE_DIR}/man/gridctl-store.5.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_SOURCE_DIR}/completions/gridctl.bash RENAME gridctl
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_SOURCE_DIR}/completions/_gridctl DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${CMAKE_SOURCE_DIR}/completions/gridctl.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
