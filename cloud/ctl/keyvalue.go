package ctl

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"kennel/infra/cli"
)

// parseKeyValue reads KEY=VALUE. KEY is a path of names with dots, such as custom_eye_color.hue. VALUE is taken as JSON if it is JSON
// (3, true, "text", {"a":1}), else as the text it is.
func parseKeyValue(arg string) (key string, value json.RawMessage, err error) {
	key, text, ok := strings.Cut(arg, "=")
	if !ok {
		return "", nil, cli.Usage("%.80q: want KEY=VALUE, such as master_volume=3", arg)
	}
	for part := range strings.SplitSeq(key, ".") {
		if part == "" || strings.ContainsFunc(part, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
			return "", nil, cli.Usage("key %.80q: want names separated by dots, such as custom_eye_color.hue", key)
		}
	}
	if !utf8.ValidString(arg) {
		return "", nil, cli.Usage("%.80q is not UTF-8 text", arg)
	}
	if json.Valid([]byte(text)) {
		return key, json.RawMessage(strings.TrimSpace(text)), nil
	}
	value, err = json.Marshal(text)
	return key, value, err
}

// parseSet reads several KEY=VALUE; a key given twice is an error, because it is unclear which was meant.
func parseSet(args []string) (map[string]json.RawMessage, error) {
	set := make(map[string]json.RawMessage, len(args))
	for _, arg := range args {
		key, value, err := parseKeyValue(arg)
		if err != nil {
			return nil, err
		}
		if _, twice := set[key]; twice {
			return nil, cli.Usage("key %.80q is given twice", key)
		}
		set[key] = value
	}
	return set, nil
}
