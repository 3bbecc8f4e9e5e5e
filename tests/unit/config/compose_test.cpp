// SPDX-License-Identifier: Apache-2.0
// docker-compose files of model servers, as they are published.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/job_file.hpp"

namespace gridctl::config::compose_test {
namespace {
using namespace std::chrono_literals;
using ::testing::HasSubstr;

Result<ParsedJob> compose_file(const std::string& text) {
  Context context;
  context.base_directory = "/home/ada";
  context.environment = [](std::string_view name) {
    return name == "HF_TOKEN" ? std::optional<std::string>("hf_1") : std::nullopt;
  };
  context.path_kind = [](const std::string&) { return PathKind::directory; };
  return parse_job_file(text, "compose.yaml", context);
}
std::string compose_refusal(const std::string& text) {
  const auto job = compose_file(text);
  return job ? "taken" : job.error().one_line();
}

TEST(Compose, AModelServerIsAService) {
  const auto job = compose_file(R"(version: "3.8"
services:
  vllm:
    image: vllm/vllm-openai:v0.6.3
    container_name: vllm
    restart: unless-stopped
    ipc: host
    shm_size: 8g
    command: --model Qwen/Qwen2.5-7B-Instruct --max-model-len 8192
    environment:
      - HUGGING_FACE_HUB_TOKEN=${HF_TOKEN}
      - HF_TOKEN
      - VLLM_LOGGING_LEVEL=${LEVEL:-INFO}
    ports: ["8001:8000"]
    volumes:
      - hf-cache:/root/.cache/huggingface
      - ./templates:/templates:ro
    healthcheck:
      test: ["CMD", "curl", "-f", "http://localhost:8000/health"]
      interval: 30s
      timeout: 10s
      start_period: 10m
    deploy:
      replicas: 2
      resources:
        reservations:
          devices:
            - {driver: nvidia, count: 1, capabilities: [gpu]}
volumes: {hf-cache: {}}
)");
  ASSERT_TRUE(job) << job.error().message;
  const job::Spec& spec = job->spec;
  EXPECT_EQ(spec.name, "vllm");
  EXPECT_EQ(spec.image, "vllm/vllm-openai:v0.6.3");
  EXPECT_EQ(spec.run,
            "python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen2.5-7B-Instruct --max-model-len 8192");
  ASSERT_TRUE(spec.service);
  EXPECT_EQ(spec.service->port, 8000);
  EXPECT_EQ(spec.service->path, "/health");
  EXPECT_EQ(spec.service->initial_delay, 10min);
  EXPECT_EQ(spec.service->timeout, 10s);
  EXPECT_EQ(spec.twins, 2);
  EXPECT_EQ(spec.envs.at("VLLM_LOGGING_LEVEL"), "INFO");
  EXPECT_EQ(job->secrets.at("HF_TOKEN"), "hf_1");
  EXPECT_EQ(job->secrets.at("HUGGING_FACE_HUB_TOKEN"), "hf_1");
  ASSERT_EQ(spec.resources.gpus.size(), 1U);
  EXPECT_EQ(spec.resources.gpus[0].vendor, Vendor::nvidia);
  ASSERT_EQ(spec.file_mounts.size(), 1U);
  std::string warnings;
  for (const std::string& one : job->warnings) warnings += one + "\n";
  EXPECT_THAT(warnings, HasSubstr("the volume at /root/.cache/huggingface is empty at each start"));
}

TEST(Compose, AListIsQuotedForTheShell) {
  const auto job = compose_file(
      "services: {web: {image: python:3.12, entrypoint: [python, -m], command: [http.server, \"80 80\"], working_dir: "
      "/srv, gpus: 2, "
      "ports: [8080]}}");
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->spec.run, "cd /srv && python -m http.server '80 80'");
  EXPECT_EQ(job->spec.service->port, 8080);
  EXPECT_EQ(job->spec.resources.gpus.at(0).count_min, 2);
  EXPECT_EQ(job->spec.resources.gpus.at(0).vendor, Vendor::nvidia);
}

TEST(Compose, AHealthCheckIsAPathOrACommand) {
  const auto command = [](std::string_view test) {
    const auto job = compose_file("services: {web: {image: x, command: y, ports: [80], healthcheck: {test: " + std::string(test) + "}}}");
    return job ? job->spec.service->path + "|" + job->spec.service->probe_command : job.error().message;
  };
  EXPECT_EQ(command("[CMD-SHELL, \"test -e /ready || exit 1\"]"), "|test -e /ready || exit 1");
  EXPECT_EQ(command("[CMD, redis-cli, \"a b\"]"), "|redis-cli 'a b'");
  EXPECT_EQ(command("test -e /ready"), "|test -e /ready");
  EXPECT_EQ(command("[NONE]"), "|");
  EXPECT_EQ(command("[CMD-SHELL, \"curl -f http://localhost:80/up || exit 1\"]"), "/up|");
}

TEST(Compose, WhatIsNotServedIsNamedWithWhatToWriteInstead) {
  EXPECT_THAT(compose_refusal("services: {a: {image: x, command: y, ports: [1]}, b: {image: z}}"),
              HasSubstr("expected one service, got 2"));
  EXPECT_THAT(compose_refusal("services: {a: {build: ., ports: [1]}}"),
              HasSubstr("'services.a.build': is not supported: build the image"));
  EXPECT_THAT(compose_refusal("services: {a: {image: x, ports: [1]}}"),
              HasSubstr("write its program with 'entrypoint'"));
  EXPECT_THAT(compose_refusal("services: {a: {image: x, command: y}}"),
              HasSubstr("'services.a.ports': expected one port"));
  EXPECT_THAT(compose_refusal("services: {a: {image: x, command: y, ports: [1, 2]}}"), HasSubstr("expected one port"));
  EXPECT_THAT(compose_refusal("services: {a: {image: x, command: y, ports: [1], network_mode: host}}"),
              HasSubstr("'services.a.network_mode'"));
  EXPECT_THAT(compose_refusal("services: {a: {image: x, comand: y, ports: [1]}}"), HasSubstr("did you mean 'command'"));
}

}  // namespace
}  // namespace gridctl::config::compose_test
