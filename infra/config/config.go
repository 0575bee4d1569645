// Package config reads a program's settings: defaults in code, then a YAML file, then the environment; flags are the caller's, on top.
// A key that the program does not know is an error that names it, so that a typing mistake is not silence. Secrets are never settings:
// a setting names the file that holds one.
package config

import (
	"encoding"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"

	"kennel/infra/suggest"
)

// tag names a setting in the struct: `koanf:"data_dir"`.
const tag = "koanf"

// Load fills dst, a pointer to a struct that already holds the defaults, from file ("" for none) and from those environ entries that
// begin with prefix (KENNEL_ makes KENNEL_MQTT_URL the setting mqtt.url).
func Load(dst any, file, prefix string, environ []string) error {
	k := koanf.New(".")
	if file != "" {
		b, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("configuration: %w", err)
		}
		if err := k.Load(rawbytes.Provider(b), yaml.Parser()); err != nil {
			return fmt.Errorf("configuration %s: %w", file, err)
		}
	}
	known := keys(reflect.TypeOf(dst).Elem(), "")
	if err := checkKeys(k.Keys(), known); err != nil {
		return fmt.Errorf("configuration %s: %w", file, err)
	}
	env, err := fromEnv(environ, prefix, known)
	if err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	if err := k.Load(confmap.Provider(env, "."), nil); err != nil {
		return fmt.Errorf("environment: %w", err)
	}
	dec, err := mapstructure.NewDecoder(&mapstructure.DecoderConfig{
		Result:           dst,
		TagName:          tag,
		WeaklyTypedInput: true,
		ErrorUnused:      true,
		DecodeHook: mapstructure.ComposeDecodeHookFunc(
			mapstructure.StringToTimeDurationHookFunc(),
			mapstructure.TextUnmarshallerHookFunc(),
			mapstructure.StringToSliceHookFunc(","),
		),
	})
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if err := dec.Decode(k.Raw()); err != nil {
		return fmt.Errorf("configuration %s: %w", file, err)
	}
	return nil
}

// keys lists every setting of t, dotted.
func keys(t reflect.Type, prefix string) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get(tag)
		if name == "" || name == "-" {
			continue
		}
		if f.Type.Kind() == reflect.Struct && !reflect.PointerTo(f.Type).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
			out = append(out, keys(f.Type, prefix+name+".")...)
			continue
		}
		out = append(out, prefix+name)
	}
	return out
}

func checkKeys(got, known []string) error {
	var bad []error
	for _, g := range got {
		if !slices.ContainsFunc(known, func(k string) bool { return g == k || strings.HasPrefix(g, k+".") }) {
			bad = append(bad, fmt.Errorf("unknown setting %q%s", g, suggest.DidYouMean(g, known)))
		}
	}
	return errors.Join(bad...)
}

func fromEnv(environ []string, prefix string, known []string) (map[string]any, error) {
	names := map[string]string{}
	for _, k := range known {
		names[prefix+strings.ToUpper(strings.ReplaceAll(k, ".", "_"))] = k
	}
	out := map[string]any{}
	var bad []error
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		k, ok := names[name]
		if !ok {
			bad = append(bad, fmt.Errorf("unknown variable %s", name))
			continue
		}
		out[k] = value
	}
	return out, errors.Join(bad...)
}

// Size is a number of bytes, written "64MiB", "10MB" or "4096".
type Size int64

var units = []struct {
	suffix string
	n      int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}, {"", 1}}

// UnmarshalText reads a size.
func (s *Size) UnmarshalText(b []byte) error {
	for _, u := range units {
		if num, ok := strings.CutSuffix(string(b), u.suffix); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(num), 10, 64)
			if err != nil || n < 0 || n > (1<<62)/u.n {
				return fmt.Errorf("size %.40q: want a number with KiB, MiB, GiB, KB, MB, GB or nothing", b)
			}
			*s = Size(n * u.n)
			return nil
		}
	}
	return nil
}
