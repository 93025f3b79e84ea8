package llm

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leat-dev/leat/agent"
	"github.com/leat-dev/leat/agent/agenttest"
	"github.com/leat-dev/leat/agent/llm/llmtest"
	"github.com/leat-dev/leat/dialect/all"
)

func TestOptionsRefused(t *testing.T) {
	for _, tt := range [][2]string{
		{"anthropic", "needs a target"},
		{"anthropic:m?base_url=host", "base_url"},
		{"anthropic:m?base_url=http://user:pw@host", "base_url"},
		{"openai:m?base_url=http://host/v1%3Fkey=s3cret", "base_url"},
		{"anthropic:m?max_tokens=0", "max_tokens"},
		{"anthropic:m?temperature=3", "temperature"},
		{"anthropic:m?temperature=NaN", "temperature"},
		{"anthropic:m?thinking=100", "1024"},
		{"anthropic:m?thinking=2000&max_tokens=2000", "max_tokens"},
		{"anthropic:m?thinking=2000&temperature=1", "can't be combined"},
		{"openai:m?thinking=much", "low"},
		{"responses:m?background=perhaps", "background"},
		{"openai:m?background=true", "no option"},
		{"gemini:m?thinking=much", "adaptive"},
		{"ollama:m?thinking=much", "medium"},
		{"ollama:m?history_bytes=x", "history_bytes"},
		{"ollama:m?system=a&system_file=b", "both"},
		{"ollama:m?system_file=/nowhere/leat/prompt.txt", "system_file"},
		{"openai:m?api_key=sk-1", "no option"},
		{"openai:m?api_key_env=A&token_env=B", "old name of token_env"},
		{"openai:m?token_env=LEAT_TEST_LLM_NONE", "the environment variable LEAT_TEST_LLM_NONE is not set"},
		{"ollama:m?token=", "token is empty"},
	} {
		spec, word := tt[0], tt[1]
		s, err := agent.ParseSpec(spec)
		if err == nil {
			_, err = agent.Kinds(Kinds(all.Registry())).Make(s)
		}
		if err == nil || !strings.Contains(err.Error(), word) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want %q", spec, err, word)
		}
	}
}

// The option thinking is sent in each provider's terms, which its server accepts.
func TestThinking(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	for _, tt := range []struct {
		kind, thinking, key string
		want                any
	}{
		{"anthropic", "2048", "thinking", object{"type": "enabled", "budget_tokens": 2048.0}},
		{"anthropic", "adaptive", "thinking", object{"type": "adaptive"}},
		{"anthropic", "off", "thinking", object{"type": "disabled"}},
		{"openai", "low", "reasoning_effort", "low"},
		{"responses", "high", "reasoning", object{"effort": "high", "summary": "auto"}},
		{"responses", "none", "reasoning", object{"effort": "none"}},
		{"gemini", "512", "generationConfig", object{"thinkingConfig": object{"thinkingBudget": 512.0, "includeThoughts": true}}},
		{"gemini", "off", "generationConfig", object{"thinkingConfig": object{"thinkingBudget": 0.0}}},
		{"gemini", "adaptive", "generationConfig", object{"thinkingConfig": object{"includeThoughts": true}}},
		{"ollama", "on", "think", true},
		{"ollama", "off", "think", false},
		{"ollama", "low", "think", "low"},
	} {
		s := llmtest.New(t, tt.kind)
		if err := agenttest.NewStage(t.Context()).Run(made(t, tt.kind, s.URL, map[string]string{"thinking": tt.thinking}), question("go")); err != nil {
			t.Errorf("%s %s: %v", tt.kind, tt.thinking, err)
			continue
		}
		if diff := cmp.Diff(tt.want, s.Calls()[0].Body[tt.key]); diff != "" {
			t.Errorf("%s %s: %s", tt.kind, tt.thinking, diff)
		}
	}
}

func TestSystemFile(t *testing.T) {
	t.Setenv(keyEnv, llmtest.Key)
	file := filepath.Join(t.TempDir(), "prompt.md")
	if err := os.WriteFile(file, []byte("Be kind.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := llmtest.New(t, "anthropic")
	if err := agenttest.NewStage(t.Context()).Run(made(t, "anthropic", s.URL+"/v1", map[string]string{"system_file": file}), question("go")); err != nil {
		t.Fatal(err)
	}
	if got := s.Calls()[0].Body["system"]; got != "Be kind." {
		t.Errorf("%q", got)
	}
}

// A key in the environment is enough to get an agent without a configuration.
func TestFromEnvironment(t *testing.T) {
	for _, tt := range []struct {
		env  map[string]string
		want []string
	}{
		{map[string]string{"OLLAMA_API_KEY": "k", "OPENAI_API_KEY": " "}, nil},
		{map[string]string{"OPENAI_API_KEY": "k"}, []string{"openai:gpt-5.4-mini"}},
		{map[string]string{"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "OPENAI_API_KEY": " "}, []string{"anthropic:claude-sonnet-5", "gemini:gemini-flash-latest"}},
		{map[string]string{"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "OPENAI_API_KEY": "k"}, []string{"anthropic:claude-sonnet-5", "openai:gpt-5.4-mini", "gemini:gemini-flash-latest"}},
	} {
		var got []string
		for _, s := range FromEnvironment(func(name string) string { return tt.env[name] }) {
			got = append(got, s.String())
			a, err := agent.Kinds(Kinds(all.Registry())).Make(s)
			if err != nil {
				t.Fatal(err)
			}
			base(a).Close()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%v: %s", tt.env, diff)
		}
	}
}

// The error bodies are those of real servers.
func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		code   string
		retry  bool
	}{
		{401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, codeKeyRefused, false},
		{400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, codeKeyRefused, false},
		{403, `<html>no</html>`, codeKeyRefused, false},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, codeQuota, false},
		{402, `{"error":{"message":"Insufficient credits","code":402}}`, codeQuota, false},
		{429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, codeQuota, false},
		{429, `{"error":{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[{"@type":"x"},{"retryDelay":"7.5s"}]}}`, codeLimited, true},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, codeLimited, true},
		{429, ``, codeLimited, true},
		{404, `{"error":{"message":"The model 'm' does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}`, codeModel, false},
		{404, `{"error":"model \"m\" not found, try pulling it first"}`, codeModel, false},
		{404, `404 page not found`, codeModel, false},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213423 tokens > 200000 maximum"}}`, codeTooLong, false},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, codeTooLong, false},
		{400, `{"error":{"code":400,"message":"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, codeTooLong, false},
		{413, ``, codeTooLong, false},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, codeOverloaded, true},
		{503, `[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]`, codeOverloaded, true},
		{500, `{"detail":"boom"}`, codeProvider, true},
		{501, ``, codeRefused, false},
		{422, `{"detail":[{"loc":["body"]}]}`, codeRefused, false},
		{0, `{"error":{"type":"overloaded_error"}}`, codeOverloaded, true},
		{0, `{"error":{"type":"odd","message":"odd"}}`, "", false},
	} {
		p := parse([]byte(tt.body))
		if code, retry := classify(tt.status, p); code != tt.code || retry != tt.retry {
			t.Errorf("%d %s: %s, %v, want %s, %v", tt.status, tt.body, code, retry, tt.code, tt.retry)
		}
		if strings.Contains(tt.body, "7.5s") && p.hint != 7500*time.Millisecond {
			t.Errorf("%s: hint %v", tt.body, p.hint)
		}
	}
}

func TestRetryHint(t *testing.T) {
	now := time.Now()
	for _, tt := range []struct {
		h    http.Header
		want time.Duration
	}{
		{http.Header{}, 0},
		{http.Header{"Retry-After": {"3"}}, 3 * time.Second},
		{http.Header{"Retry-After-Ms": {"1500.5"}, "Retry-After": {"3"}}, 1500500 * time.Microsecond},
		{http.Header{"Retry-After-Ms": {"-1"}}, 0},
		{http.Header{"Retry-After-Ms": {"NaN"}}, 0},
		{http.Header{"Retry-After-Ms": {"1e300"}}, 0},
	} {
		if got := retryHint(tt.h, now); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.h, got, tt.want)
		}
	}
}
