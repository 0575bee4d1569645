package housetest

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// secretForms matches secrets: session tokens, JWTs, bearer headers, private keys, hashes of passwords.
var secretForms = regexp.MustCompile(`kst_[A-Za-z0-9]{8}|eyJ[A-Za-z0-9_-]{16,}\.eyJ[A-Za-z0-9_-]{8,}|-----BEGIN [A-Z ]*PRIVATE KEY|\$argon2id\$v=`)

// SecretSearch looks for secrets where they must not be: in what programs say, on their command lines and in their environments.
type SecretSearch struct {
	Secrets map[string]string // value -> where it lives
}

// Learn collects every secret in a data folder: files under secrets/, private keys, claim secrets, tokens of robots.
func (s *SecretSearch) Learn(dir string) {
	if s.Secrets == nil {
		s.Secrets = map[string]string{}
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // what went away meanwhile is no secret any more
		if err != nil || d.IsDir() {
			return nil
		}
		in := "/" + filepath.ToSlash(path)
		isKey, isText := strings.HasSuffix(in, ".key") || strings.HasSuffix(in, "/robot.pem"), strings.Contains(in, "/secrets/") ||
			strings.HasSuffix(in, "/token.jwt")
		isJSON := strings.HasSuffix(in, "/claim.json") || strings.HasSuffix(in, "/first-passwords.json")
		if !isKey && !isText && !isJSON {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		if isKey {
			for _, line := range strings.Split(string(b), "\n") {
				if len(line) >= 40 && !strings.HasPrefix(line, "-----") {
					s.Secrets[line] = path
					return nil
				}
			}
			return nil
		}
		if isJSON {
			s.jsonSecrets(path, b)
			return nil
		}
		if strings.HasSuffix(in, ".dsn") {
			return nil // the password in it is a file of its own
		}
		if v := strings.TrimSpace(string(b)); len(v) >= 8 {
			s.Secrets[v] = path
		}
		return nil
	})
}

// jsonSecrets takes the values of fields that hold secrets.
func (s *SecretSearch) jsonSecrets(path string, b []byte) {
	var walk func(key string, v any)
	walk = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(k, x)
			}
		case []any:
			for _, x := range v {
				walk(key, x)
			}
		case string:
			if (strings.Contains(key, "secret") || strings.Contains(key, "password") || strings.Contains(path, "passwords")) && len(v) >= 8 &&
				!strings.Contains(v, "@") {
				s.Secrets[v] = path
			}
		}
	}
	var v any
	if json.Unmarshal(b, &v) == nil {
		walk("", v)
	}
}

// find reports what of the secrets is in text.
func (s *SecretSearch) find(where, text string) []string {
	var out []string
	for secret, home := range s.Secrets {
		if i := strings.Index(text, secret); i >= 0 {
			out = append(out, fmt.Sprintf("%s shows a secret of %s: ...%s[here]", where, home, text[max(0, i-120):i]))
		}
	}
	if at := secretForms.FindStringIndex(text); at != nil {
		out = append(out, fmt.Sprintf("%s shows what looks like a secret: ...%s[here]", where, text[max(0, at[0]-120):at[0]+4]))
	}
	return out
}

// Logs searches every log below dir.
func (s *SecretSearch) Logs(dir string) (found []string, read int) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // as in learn
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, ".log") || strings.Contains(path, "vic-logmgr") || strings.HasSuffix(path, ".ndjson")) {
			if b, err := os.ReadFile(path); err == nil {
				found, read = append(found, s.find(path, string(b))...), read+1
			}
		}
		return nil
	})
	return found, read
}

// processes searches the command lines and environments of pids and of what they started.
func (s *SecretSearch) processes(pids ...int) (found []string) {
	for _, root := range pids {
		for _, pid := range append(Descendants(root), root) {
			for _, what := range []string{"cmdline", "environ"} {
				if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, what)); err == nil { // else it is gone, or another account's
					found = append(found, s.find(fmt.Sprintf("%s of process %d", what, pid), string(b))...)
				}
			}
		}
	}
	return found
}

// noSecretsShown fails the test if the house said or showed a secret. Every test that runs a house ends with it.
func (h *House) noSecretsShown() {
	h.T.Helper()
	var s SecretSearch
	s.Learn(h.Dir)
	if len(s.Secrets) < 5 {
		h.T.Errorf("only %d secrets found in %s: the search looks at the wrong place", len(s.Secrets), h.Dir)
	}
	found, read := s.Logs(h.Dir)
	if read == 0 {
		h.T.Errorf("no log below %s: the search looks at the wrong place", h.Dir)
	}
	found = append(found, s.find("what kenneld said", h.Out.String())...)
	if h.Cmd != nil {
		found = append(found, s.processes(h.Cmd.Process.Pid)...)
	}
	for _, f := range found {
		h.T.Error(f)
	}
}
