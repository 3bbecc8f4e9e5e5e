// SPDX-License-Identifier: Apache-2.0
// Declares every command by name; each is defined in the file with that name, and finds here what it
// takes.
#pragma once

#include "cmd/command.hpp"
#include "cmd/context.hpp"

namespace gridctl::cmd {

extern const Command k_init, k_provider_register, k_provider_ls, k_provider_show, k_provider_links, k_provider_landmark,
    k_provider_check, k_provider_rescan, k_provider_bench, k_provider_drain, k_provider_undrain, k_provider_price,
    k_provider_set, k_provider_way,
    k_provider_pause, k_provider_unpause, k_provider_rm, k_provider_shell,
    k_provider_invite, k_provider_join;
extern const Command k_lend_join, k_lend_status, k_lend_pause, k_lend_resume, k_lend_limits, k_lend_log, k_lend_leave, k_lend_receipts, k_lend_earnings,
    k_lend_serve, k_lend_dial;
extern const Command k_job_submit, k_job_apply, k_job_ls, k_job_show, k_job_watch, k_job_logs, k_job_pull, k_job_events, k_job_explain, k_job_report,
    k_job_cancel, k_job_pause, k_job_resume, k_job_rerun, k_job_rm, k_job_prune, k_job_drill, k_job_exec, k_job_shell, k_job_cp, k_job_forward;
extern const Command k_service_ls, k_service_show, k_service_url, k_service_logs, k_service_apply, k_service_stop;
extern const Command k_checkpoint_ls, k_checkpoint_show, k_checkpoint_diff, k_checkpoint_pull, k_checkpoint_push,
    k_checkpoint_verify, k_checkpoint_pin, k_checkpoint_rm;
extern const Command k_store_add, k_store_ls, k_store_rm, k_store_sync, k_store_check;
extern const Command k_template_ls, k_template_show, k_template_new;
extern const Command k_budget_set, k_budget_ls, k_budget_rm;
extern const Command k_receipts_ls, k_receipts_verify, k_receipts_export;
extern const Command k_config_ls, k_config_get, k_config_set;
extern const Command k_key_show, k_key_export, k_key_import;
extern const Command k_daemon_start, k_daemon_stop, k_daemon_status, k_daemon_install, k_daemon_uninstall, k_daemon_run;
extern const Command k_plan_train, k_plan_serve, k_plan_estimate;
extern const Command k_top, k_sim, k_doctor, k_completions, k_version;
extern const Command k_docs, k_complete, k_gateway;  // hidden

}  // namespace gridctl::cmd
