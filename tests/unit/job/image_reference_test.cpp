// SPDX-License-Identifier: Apache-2.0
#include "job/image_reference.hpp"

#include <gmock/gmock.h>

#include "job/spec.hpp"

namespace gridctl::job::image_reference_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string k_digest = "sha256:" + std::string(64, 'a');

std::string read(std::string_view text) {
  const auto image = parse_image_reference(text);
  if (!image) return "wrong";
  return image->registry + " | " + image->repository + " | " + image->tag + " | " + (image->digest.empty() ? "" : image->digest.substr(0, 10));
}

TEST(ImageReference, IsReadAsEnginesReadIt) {
  EXPECT_EQ(read("debian"), "docker.io | library/debian | latest | ");
  EXPECT_EQ(read("debian:12"), "docker.io | library/debian | 12 | ");
  EXPECT_EQ(read("pytorch/pytorch:2.4.0"), "docker.io | pytorch/pytorch | 2.4.0 | ");
  EXPECT_EQ(read("docker.io/debian"), "docker.io | library/debian | latest | ");
  EXPECT_EQ(read("index.docker.io/a/b:1"), "docker.io | a/b | 1 | ");
  EXPECT_EQ(read("ghcr.io/a/b/c"), "ghcr.io | a/b/c | latest | ");
  EXPECT_EQ(read("localhost:5000/a__b-c.d:v1"), "localhost:5000 | a__b-c.d | v1 | ");
  EXPECT_EQ(read("localhost/busybox:1"), "localhost | busybox | 1 | ");
  EXPECT_EQ(read("debian@" + k_digest), "docker.io | library/debian |  | sha256:aaa");
  EXPECT_EQ(read("debian:12@" + k_digest), "docker.io | library/debian | 12 | sha256:aaa");
}

TEST(ImageReference, ThatNoEngineAcceptsIsWrong) {
  for (const std::string text : {"", "Debian", "a//b", "/a", "a/", "a:", "a:b:c", "a:-x", "a_-b", "a___b", "a b", "a@sha256:12", "docker://x", "-a",
                                 "a/-b", "x:99999999/a", ".io/a/b", "a@sha512:1"})
    EXPECT_EQ(read(text), "wrong") << text;
  EXPECT_EQ(read("a:" + std::string(129, 'x')), "wrong");
  EXPECT_EQ(read(std::string(256, 'a')), "wrong");
  EXPECT_EQ(read("debian@sha256:" + std::string(64, 'A')), "wrong") << "upper case";
}

Spec with(const std::string& image) {
  Spec spec;
  spec.image = image;
  return spec;
}

TEST(ImageDigests, AreMissingForTagsOfRegistries) {
  EXPECT_THAT(images_without_digest(with("debian:12")), ElementsAre("debian:12"));
  EXPECT_THAT(images_without_digest(with("")), IsEmpty());
  EXPECT_THAT(images_without_digest(with("debian@" + k_digest)), IsEmpty());
  EXPECT_THAT(images_without_digest(with("localhost/busybox:1")), IsEmpty()) << "nobody can be asked";
  Spec spec = with("debian:12");
  spec.image_is_archive = true;
  EXPECT_THAT(images_without_digest(spec), IsEmpty());
  spec = with("debian:12");
  spec.variants = {{"cuda", "a/cuda:1", false, "", "", ""}, {"rocm", "a/rocm:1", false, "", "", ""}, {"cpu", "a/cuda:1", false, "", "", ""}};
  EXPECT_THAT(images_without_digest(spec), ElementsAre("a/cuda:1", "a/rocm:1"));
  spec.image_digests["a/cuda:1"] = k_digest;
  EXPECT_THAT(images_without_digest(spec), ElementsAre("a/rocm:1"));
  spec.constraints.is_private = true;
  EXPECT_THAT(images_without_digest(spec), IsEmpty()) << "no such host may run it";
  spec.constraints.is_private = false;
  spec.constraints.image_tags = true;
  EXPECT_THAT(images_without_digest(spec), IsEmpty());
}

TEST(ImageDigests, DecideWhatAHostOfOthersIsGiven) {
  Spec spec = with("debian:12");
  EXPECT_TRUE(tag_refusal(spec, "debian:12", false, "")->curable);
  EXPECT_THAT(tag_refusal(spec, "debian:12", false, "")->text, HasSubstr("has not been asked"));
  EXPECT_THAT(tag_refusal(spec, "debian:12", false, "registry docker.io: no")->text, HasSubstr("debian:12 is a tag: registry docker.io: no"));
  EXPECT_EQ(tag_refusal(spec, "debian:12", false, "")->way_out, "name the image as docker.io/library/debian@sha256:…");
  EXPECT_FALSE(tag_refusal(spec, "image.tar", true, "").has_value());
  EXPECT_FALSE(tag_refusal(spec, "", false, "").has_value());
  EXPECT_FALSE(tag_refusal(spec, "debian@" + k_digest, false, "").has_value());
  spec.image_digests["debian:12"] = k_digest;
  EXPECT_FALSE(tag_refusal(spec, "debian:12", false, "").has_value());
  EXPECT_EQ(image_on_host(spec, "debian:12", true), "docker.io/library/debian@" + k_digest);
  EXPECT_EQ(image_on_host(spec, "debian:12", false), "debian:12");
  EXPECT_EQ(image_on_host(spec, "debian:12@" + k_digest, true), "docker.io/library/debian@" + k_digest) << "podman takes no tag beside a digest";
  const auto local = tag_refusal(spec, "localhost/busybox:1", false, "");
  EXPECT_FALSE(local->curable);
  EXPECT_THAT(local->text, HasSubstr("is of no registry"));
  EXPECT_EQ(image_on_host(spec, "localhost/busybox:1", true), "localhost/busybox:1");
  spec.constraints.image_tags = true;
  EXPECT_FALSE(tag_refusal(spec, "localhost/busybox:1", false, "").has_value());
  EXPECT_EQ(image_on_host(spec, "debian:12", true), "debian:12") << "tags were asked for";
}

}  // namespace
}  // namespace gridctl::job::image_reference_test
