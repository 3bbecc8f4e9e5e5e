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
  bag_append.cpp
  bag_log.cpp
  bag_options.cpp
  bag_output.cpp
  bag_pace.cpp
  bag_reader.cpp
  bag_view.cpp
  budget.cpp
  checkpoint_diff.cpp
  checkpoint_lookup.cpp
  checkpoint_ls.cpp
  checkpoint_marks.cpp
  checkpoint_pull.cpp
  checkpoint_push.cpp
  checkpoint_remote.cpp
  checkpoint_show.cpp
  checkpoint_verify.cpp
  cli.cpp
  commands.cpp
  complete.cpp
  completion_scripts.cpp
  completions.cpp
  config.cpp
  context.cpp
  daemon_control.cpp
  daemon_run.cpp
  deadline_view.cpp
  doctor.cpp
  doctor_here.cpp
  doctor_hosts.cpp
  empty_directory.cpp
  findings.cpp
  follow.cpp
  habits.cpp
  help.cpp
  help_topic.cpp
  host_words.cpp
  init.cpp
  job_apply.cpp
  job_cancel.cpp
  job_changes.cpp
  job_cp.cpp
  job_drill.cpp
  job_events.cpp
  job_exec.cpp
  job_explain.cpp
  job_forward.cpp
  job_logs.cpp
  job_ls.cpp
  job_origin.cpp
  job_pause.cpp
  job_plan.cpp
  job_pull.cpp
  job_query.cpp
  job_report.cpp
  job_rerun.cpp
  job_resume.cpp
  job_rm.cpp
  job_show.cpp
  job_submit.cpp
  job_watch.cpp
  key_files.cpp
  key_show.cpp
  lend_join.cpp
  lend_owner.cpp
  lend_receipts.cpp
  lend_words.cpp
  log_printer.cpp
  log_reader.cpp
  manual.cpp
  manual_agents.cpp
  manual_query.cpp
  manual_training.cpp
  manuals.cpp
  network.cpp
  outcome.cpp
  pausing.cpp
  plan_estimate.cpp
  plan_islands.cpp
  plan_question.cpp
  plan_report.cpp
  plan_serve.cpp
  plan_train.cpp
  provider_bench.cpp
  provider_check.cpp
  provider_drain.cpp
  provider_facts.cpp
  provider_invite.cpp
  provider_landmark.cpp
  provider_links.cpp
  provider_ls.cpp
  provider_pause.cpp
  provider_price.cpp
  provider_register.cpp
  provider_rescan.cpp
  provider_rm.cpp
  provider_set.cpp
  provider_show.cpp
  provider_way.cpp
  receipt_words.cpp
  receipts.cpp
  recovery_view.cpp
  running_member.cpp
  service_apply.cpp
  service_gateway.cpp
  service_now.cpp
  service_show.cpp
  service_stop.cpp
  sim.cpp
  sim_question.cpp
  sim_report.cpp
  store_add.cpp
  store_check.cpp
  store_ls.cpp
  store_remotes.cpp
  store_rm.cpp
  store_sync.cpp
  submission.cpp
  submit_checks.cpp
  template.cpp
  template_files.cpp
  top.cpp
  training_outcome.cpp
  training_plan.cpp
  version.cpp
  word_doubts.cpp)
# The files of cmd/templates/ become a table in the program.
set(template_rows ${CMAKE_BINARY_DIR}/generated/template_rows.inc)
file(GLOB template_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmd/templates/*/*.yaml ${CMAKE_SOURCE_DIR}/cmd/templates/*/*.py
     ${CMAKE_SOURCE_DIR}/cmd/templates/*.py)
add_custom_command(OUTPUT ${template_rows}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${CMAKE_SOURCE_DIR}/cmd/templates -DOUT=${template_rows} -P ${CMAKE_SOURCE_DIR}/cmd/templates/templates.cmake
  DEPENDS ${template_files} ${CMAKE_SOURCE_DIR}/cmd/templates/templates.cmake COMMENT "Collecting the templates" VERBATIM)
set_source_files_properties(template_files.cpp PROPERTIES OBJECT_DEPENDS ${template_rows})
set_source_files_properties(manuals.cpp PROPERTIES OBJECT_DEPENDS ${CMAKE_BINARY_DIR}/generated/manuals.inc)
add_dependencies(gridctl manuals)
# The argument parser is only in cli.cpp.
gridctl_compile_together(gridctl)
gridctl_optimize(gridctl)
target_include_directories(gridctl PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_definitions(gridctl PRIVATE GRIDCTL_VERSION="${PROJECT_VERSION}" ${built_with})
target_link_libraries(gridctl PRIVATE gridctl_flags gridctl_sanitize)
if(GRIDCTL_STATIC STREQUAL "some")
  target_link_options(gridctl PRIVATE -static-libstdc++ -static-libgcc)
elseif(GRIDCTL_STATIC STREQUAL "all")
  target_link_options(gridctl PRIVATE -static)
endif()
# Of which commit: looked at by each build, written when it is another one.
set(commit ${CMAKE_BINARY_DIR}/generated/commit.inc)
add_custom_target(commit COMMAND ${CMAKE_COMMAND} -DOUT=${commit} -DSOURCE=${CMAKE_SOURCE_DIR} -P ${CMAKE_CURRENT_SOURCE_DIR}/commit.cmake
                  BYPRODUCTS ${commit} VERBATIM)
set_source_files_properties(version.cpp PROPERTIES OBJECT_DEPENDS ${commit})
add_dependencies(gridctl commit)
foreach(room ui forecast control registry transfer store probe config plan sched job ssh db crypto wire os base)
  if(TARGET gridctl_${room})
    target_link_libraries(gridctl PRIVATE gridctl_${room})
  endif()
endforeach()

install(TARGETS gridctl RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/gridctl.service DESTINATION lib/systemd/user)
# Not while a package is made: then it lies in a folder that goes again.
install(CODE "if(NOT CMAKE_INSTALL_PREFIX MATCHES _CPack_Packages AND NOT \"\$ENV{DESTDIR}\" MATCHES _CPack_Packages)
  message(\"gridctl is at \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/gridctl\")
endif()")
install(FILES ${CMAKE_SOURCE_DIR}/completions/gridctl.bash RENAME gridctl
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${CMAKE_SOURCE_DIR}/completions/_gridctl DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${CMAKE_SOURCE_DIR}/completions/gridctl.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
