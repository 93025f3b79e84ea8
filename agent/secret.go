package agent

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxSecret is the largest file that is read as a secret, in bytes.
const maxSecret = 16 << 10

// The two other ways to give a secret NAME are the options NAME_env and NAME_file.
const (
	envSuffix  = "_env"
	fileSuffix = "_file"
)

// SecretOptions returns the options with which a kind takes the secret of the given name. NAME is the secret itself, NAME_env an
// environment variable that contains it, and NAME_file a file that contains it. A kind reads them with [Spec.Secret]. If none is given
// and defaultEnv isn't empty, the help says that the kind reads that environment variable; the kind itself does so.
func SecretOptions(name, help, defaultEnv string) []Option {
	return []Option{
		{Name: name, Help: help + "; on a command line other users can read it, so prefer the next two", Secret: true},
		{Name: name + envSuffix, Help: "environment variable with the " + name, Default: defaultEnv},
		{Name: name + fileSuffix, Help: "file with the " + name},
	}
}

// Secret returns the secret that one of the options of [SecretOptions] gives, without the white space around it, or "" if none of them
// is given. Two of them are an error, and so is a secret that is empty. Errors never contain the secret.
func (s Spec) Secret(name string) (string, error) {
	source := ""
	for _, option := range []string{name, name + envSuffix, name + fileSuffix} {
		if _, ok := s.Options[option]; !ok {
			continue
		}
		if source != "" {
			return "", fmt.Errorf("%s and %s are both set; use one of them", source, option)
		}
		source = option
	}
	if source == "" {
		return "", nil
	}
	value := s.Options[source]
	if strings.TrimSpace(value) == "" {
		return "", fmt.Errorf("%s is empty", source)
	}
	switch source {
	case name + envSuffix:
		secret := strings.TrimSpace(os.Getenv(value))
		if secret == "" {
			return "", fmt.Errorf("%s: the environment variable %s is not set", source, value)
		}
		return secret, nil
	case name + fileSuffix:
		secret, err := readSecret(value)
		if err != nil {
			return "", fmt.Errorf("%s: %w", source, err)
		}
		return secret, nil
	}
	return strings.TrimSpace(value), nil
}

// readSecret returns the content of a file without the white space around it, since editors end files with a line feed. A file that
// is empty or large was probably named by mistake.
func readSecret(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	secret := strings.TrimSpace(string(b))
	switch {
	case len(b) > maxSecret:
		return "", fmt.Errorf("%s is larger than %d bytes", file, maxSecret)
	case secret == "":
		return "", fmt.Errorf("%s is empty", file)
	}
	return secret, nil
}

// Secrets returns the secrets that the options of a spec give, so that they can be masked elsewhere. It leaves out those that can't be
// read, since Make reports them.
func (k Kinds) Secrets(s Spec) []string {
	kind, ok := k.find(s.Kind)
	if !ok {
		return nil
	}
	s = kind.withCurrentNames(s)
	var secrets []string
	for _, o := range kind.Options {
		if !o.Secret {
			continue
		}
		if secret, err := s.Secret(o.Name); err == nil && secret != "" {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}
