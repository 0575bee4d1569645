package artifactapi

import "testing"

// FuzzFileOf: an address that is understood is the address of what it means.
func FuzzFileOf(f *testing.F) {
	for _, path := range []string{"/vic/prod/full/latest.ota", "/vic/beta/full/2.0.1.6076.ota", "/vic/dev/diff/1.8.0.6051ud.ota", "/vic/prod/diff/latest.ota", "/vic/../x.ota"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		file, ok := fileOf(path)
		if !ok {
			return
		}
		name, kind := string(file.Version), "full"
		switch {
		case file.Delta:
			name, kind = string(file.Base), "diff"
		case name == "":
			name = "latest"
		}
		if back := "/vic/" + file.Channel + "/" + kind + "/" + name + ".ota"; back != path {
			t.Errorf("%q is %+v, which is %q", path, file, back)
		}
	})
}
