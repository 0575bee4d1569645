package kit

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"kennel/edge/body/pleo/format"
	"kennel/edge/body/pleo/lifeos"
	"kennel/edge/pawn/amx"
)

// versions are those of a bundle's scripts.
func versions(t *testing.T, b *format.Bundle) (out []uint8) {
	t.Helper()
	for _, r := range b.Resources[format.Scripts] {
		p, err := amx.Read(r.Data)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p.Version)
	}
	return out
}

// TestProfile: a project says for which firmware it is, and -profile has the last word: version 8 or 9 of AMX files without overlays for 1.0, 10 for 1.1
// (PLEO-PDK-04, PLEO-PBT-06, PLEO-PBT-07).
func TestProfile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	if _, err := Init(dir, lifeos.Profile10); err != nil {
		t.Fatal(err)
	}
	old, new := lifeos.Profile10, lifeos.Profile11
	r, b, log := build(t, dir, Options{})
	if got := versions(t, b); r.Profile != "1.0" || got[0] != 9 || got[1] != 9 || len(r.Warnings) > 0 || strings.Contains(log, "-V") || strings.Contains(log, "overlay") {
		t.Errorf("profile %s, versions %v, warnings %q\n%s", r.Profile, got, r.Warnings, log)
	}
	r, b, log = build(t, dir, Options{Profile: &new})
	if got := versions(t, b); r.Profile != "1.1" || got[0] != 10 || !strings.Contains(log, " PLEO_API=110") || strings.Contains(log, "PLEO_API=100") {
		t.Errorf("profile %s, versions %v\n%s", r.Profile, got, log)
	}
	other := filepath.Join(t.TempDir(), "new")
	if _, err := Init(other, new); err != nil {
		t.Fatal(err)
	}
	if r, b, log = build(t, other, Options{}); r.Profile != "1.1" || versions(t, b)[0] != 10 || strings.Contains(log, "PLEO_API") {
		t.Errorf("profile %s\n%s", r.Profile, log)
	}
	if r, b, log = build(t, other, Options{Profile: &old}); r.Profile != "1.0" || versions(t, b)[0] != 9 || strings.Contains(log, "-V2048") || !strings.Contains(log, " PLEO_API=100") {
		t.Errorf("profile %s\n%s", r.Profile, log)
	}
}

// TestNewer: what firmware 1.0 lacks is refused where it is written, with the profile's name (PLEO-PKT-07); so are finished scripts of the other firmware and numbers that
// are none of a profile.
func TestNewer(t *testing.T) {
	const project = `<upf_project name="app"><options><tools><pawn value="pawncc %i -O1 -C- PLEO_API=API -o%o" /></tools></options><resources><script path="NAME"/></resources></upf_project>`
	script := func(text string) []byte {
		_, b, _ := build(t, folder(t, map[string]string{"app.upf": strings.NewReplacer("API=API", "API=110", "NAME", "main.p").Replace(project), "main.p": text}), Options{})
		return b.Resources[format.Scripts][0].Data
	}
	finished := string(script("main() {}\n"))
	for _, c := range []struct{ name, api, text, want string }{
		{"main.p", "100", "#include <Sensor.inc>\nmain()\n\tsensor_write_data(SENSOR_PACKET, \"?\");\n", `main.p(3,20) : error 017: symbol "SENSOR_PACKET" is not defined; found "SENSOR_PACKET"; fix: profile 1.0 has no SENSOR_PACKET`},
		{"main.p", "100", "#include <Sensor.inc>\nmain() sensor_set_config(SENSOR_TIMER, sensor_config_packet_filter, 1);\n", "profile 1.0 has no sensor_config_packet_filter"},
		{"main.p", "100", "#include <Sensor.inc>\nmain() return _: PACKET_TOUCH;\n", "profile 1.0 has no PACKET_TOUCH"},
		{"main.p", "110", "main() return SENSOR_PACKET;\n", `error 017: symbol "SENSOR_PACKET" is not defined; found "SENSOR_PACKET"`}, // without its include file
		{"main.p", "105", "main() {}\n", "want 110 for profile 1.1, or 100 for 1.0"},
		{"main.amx", "100", finished, "main.amx: script of AMX version 10: want 8 to 9"},
	} {
		dir := folder(t, map[string]string{"app.upf": strings.NewReplacer("API=API", "API="+c.api, "NAME", c.name).Replace(project), c.name: c.text})
		var e *Error
		_, err := Build(dir, Options{})
		if !errors.As(err, &e) || !strings.Contains(e.Problems[0], c.want) {
			t.Errorf("%.60q for %s: %v, want %q", c.text, c.api, err, c.want)
		} else if c.api == "110" && strings.Contains(e.Problems[0], "profile") {
			t.Errorf("%s", e.Problems[0])
		}
	}
	for _, c := range []struct {
		profile lifeos.Profile
		scripts string
		warns   bool
	}{
		{lifeos.Profile11, `<script path="init.p"/>`, true}, {lifeos.Profile10, `<script path="init.p"/>`, false}, {lifeos.Profile10, `<script path="startup.p"/>`, true},
		{lifeos.Profile11, `<script path="startup.p"/><script path="init.p"/>`, false},
	} {
		r, _, _ := build(t, folder(t, map[string]string{"app.upf": upf(c.scripts), "init.p": "main() {}\n", "startup.p": "main() {}\n"}), Options{Profile: &c.profile})
		if (len(r.Warnings) > 0) != c.warns {
			t.Errorf("%s for %s: warnings %q", c.scripts, c.profile, r.Warnings)
		}
	}
	// The Behavior VM of 1.0 has 512 bytes less, and its include file says so (PLEO-LIM-02).
	for _, p := range []lifeos.Profile{lifeos.Profile10, lifeos.Profile11} {
		text := "#include <pleo/limits.inc>\n#include <pleo/sensors.inc>\n#assert AUX_RAM_MAX == 2560 - 512 * _: (PLEO_API < PLEO_1_1) && _: SENSOR_MAX == 40 + _: (PLEO_API >= PLEO_1_1)\nnew a[450]\nmain() a[1] = a[2];\n"
		r, _, _ := build(t, folder(t, map[string]string{"app.upf": upf(`<script path="eat.p"/>`), "eat.p": text}), Options{Profile: &p})
		if (len(r.Warnings) > 0) != (p == lifeos.Profile10) {
			t.Errorf("%s: warnings %q", p, r.Warnings)
		}
	}
}

// TestInstalled: the folder of the kit is known as pdk and as sdk, and a project can say another one (PLEO-API-05).
func TestInstalled(t *testing.T) {
	const project = `<upf_project name="app"><options><include value="./include:${NAME}/include"/></options><resources><script path="main.p"/></resources></upf_project>`
	files := map[string]string{"main.p": "#include <pleo/limits.inc>\nmain() return SIZE;\n", "mine/include/pleo/limits.inc": "const SIZE = 5\n"}
	for _, c := range []struct {
		name    string
		defines map[string]string
		fails   bool
	}{{"pdk", nil, true}, {"sdk", nil, true}, {"pdk", map[string]string{"pdk": "mine"}, false}, {"ndk", nil, true}} {
		files["app.upf"] = strings.Replace(project, "NAME", c.name, 1)
		_, err := Build(folder(t, files), Options{Defines: c.defines})
		var e *Error
		if (err != nil) != c.fails || c.fails && (!errors.As(err, &e) || strings.Contains(e.Problems[0], "macro") != (c.name == "ndk")) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	files["main.p"] = "#include <pleo/limits.inc>\nmain() return AUX_RAM_MAX;\n"
	files["app.upf"] = strings.Replace(project, "NAME", "pdk", 1)
	if _, err := Build(folder(t, files), Options{}); err != nil {
		t.Error(err)
	}
}

// TestTarget: a script for another life form than Pleo finds no include files (PLEO-API-04).
func TestTarget(t *testing.T) {
	for target, want := range map[string]string{"100": "", "200": "error 111"} {
		dir := folder(t, map[string]string{"main.p": "#include <Sensor.inc>\nmain() return _: SENSOR_HEAD;\n", "app.upf": `<upf_project name="app"><options><tools><pawn value="pawncc %i TARGET=` + target +
			` -o%o" /></tools></options><resources><script path="main.p"/></resources></upf_project>`})
		var e *Error
		if _, err := Build(dir, Options{}); (err != nil) != (want != "") || err != nil && (!errors.As(err, &e) || !strings.Contains(e.Problems[0], want)) {
			t.Errorf("TARGET=%s: %v", target, err)
		}
	}
}
