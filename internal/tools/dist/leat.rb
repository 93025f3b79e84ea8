# Made by "make dist"; it installs the program that the release has built.
class Leat < Formula
  desc "Streaming gateway for AI agents"
  homepage "https://github.com/leat-dev/leat"
  version "{{.Version}}"
  license "Apache-2.0"

  on_macos do
{{- with .darwin_arm64}}
    on_arm do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
{{- with .darwin_amd64}}
    on_intel do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end

  on_linux do
{{- with .linux_arm64}}
    on_arm do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
{{- with .linux_amd64}}
    on_intel do
      url "{{.URL}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end

  def install
    bin.install "leat"
    pkgshare.install "leat.example.yaml"
  end

  service do
    run [opt_bin/"leat", "serve", "--data", var/"leat"]
    keep_alive true
    log_path var/"log/leat.log"
    error_log_path var/"log/leat.log"
  end

  test do
    assert_match "\"version\":\"v#{version}\"", shell_output("#{bin}/leat version --json")
  end
end
