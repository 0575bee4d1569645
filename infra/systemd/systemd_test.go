package systemd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// hostUnits is where Debian has the units that ours refer to.
const hostUnits = "/lib/systemd/system"

// machine makes the root of a machine with our units and stand-ins for our programs.
func machine(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	units := filepath.Join(root, "etc/systemd/system")
	for _, dir := range []string{units, filepath.Join(root, "usr/lib/systemd/system"), filepath.Join(root, "usr/bin")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("usr/lib", filepath.Join(root, "lib")); err != nil {
		t.Fatal(err)
	}
	theirs, err := filepath.Glob(hostUnits + "/*.target")
	if err != nil || len(theirs) < 10 {
		t.Fatalf("%d targets in %s (%v): is systemd installed? run infra/setup.sh test", len(theirs), hostUnits, err)
	}
	theirs = append(theirs, hostUnits+"/systemd-tmpfiles-setup.service", hostUnits+"/-.slice")
	for _, f := range theirs {
		b, err := os.ReadFile(f)
		if errors.Is(err, os.ErrNotExist) {
			continue // built into systemd, or a link to nowhere
		}
		write(t, filepath.Join(root, "usr/lib/systemd/system", filepath.Base(f)), b, 0o644)
	}
	for _, f := range ours(t) {
		write(t, filepath.Join(units, f), read(t, f), 0o644)
	}
	for _, program := range []string{"kenneld", "robotd", "agentd", "mindd"} {
		write(t, filepath.Join(root, "usr/bin", program), []byte("#!/bin/sh\n"), 0o755)
	}
	return root
}

// ours lists the unit files.
func ours(t *testing.T) []string {
	t.Helper()
	services, _ := filepath.Glob("*.service") // the only error is a bad pattern
	timers, _ := filepath.Glob("*.timer")
	if len(services) < 4 || len(timers) < 1 {
		t.Fatalf("units: %v, %v", services, timers)
	}
	return append(services, timers...)
}

// instance turns a template's name into one that can be checked.
func instance(file string) string {
	return strings.NewReplacer("kenneld@.", "kenneld@all.", "robot-again@.", "robot-again@agentd.").Replace(file)
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, name string, b []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, b, mode); err != nil {
		t.Fatal(err)
	}
}

// verify returns systemd's complaints about a unit; "" if there are none. systemd reports unknown settings but exits with 0.
func verify(root, unit string) string {
	out, err := exec.Command("systemd-analyze", "verify", "--root="+root, "--man=no", unit).CombinedOutput()
	if err != nil {
		return err.Error() + ": " + string(out)
	}
	return string(out)
}

func TestUnitsVerify(t *testing.T) {
	root := machine(t)
	for _, f := range ours(t) {
		if said := verify(root, instance(f)); said != "" {
			t.Errorf("%s: %s", f, said)
		}
	}
	// The checker notices: a misspelt setting, and a program that is not there.
	for old, wrong := range map[string]string{"RestartSec=": "RestrtSec=", "/usr/bin/agentd": "/usr/bin/agend"} {
		text := strings.Replace(string(read(t, "agentd.service")), old, wrong, 1)
		write(t, filepath.Join(root, "etc/systemd/system/agentd.service"), []byte(text), 0o644)
		if verify(root, "agentd.service") == "" {
			t.Errorf("nobody minds %s", wrong)
		}
	}
}

// TestUnitsAreClosed holds each service to an exposure of at most 2.0, of 10, by systemd's own reckoning.
func TestUnitsAreClosed(t *testing.T) {
	root := machine(t)
	for _, f := range ours(t) {
		if filepath.Ext(f) != ".service" {
			continue
		}
		out, err := exec.Command("systemd-analyze", "security", "--offline=true", "--root="+root, "--threshold=20", "--no-pager", instance(f)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", f, err, out)
		}
	}
}

// TestRestartLimits: VEC-FLT-07 has two restarts in 60 s, 5 s apart, after 3 s for a polite end.
func TestRestartLimits(t *testing.T) {
	for _, f := range []string{"robotd.service", "agentd.service", "mindd.service"} {
		for _, want := range []string{"StartLimitIntervalSec=60", "StartLimitBurst=3" /* the first start counts */, "RestartSec=5s", "TimeoutStopSec=3s", "Restart=always"} {
			if !strings.Contains(string(read(t, f)), "\n"+want+"\n") {
				t.Errorf("%s: want %s", f, want)
			}
		}
	}
}

// TestEndIsAFault: VEC-WDOG-04: what ended badly posts its fault, in whatever way its supervisor ends it.
func TestEndIsAFault(t *testing.T) {
	for f, code := range map[string]string{"robotd.service": "916", "agentd.service": "923"} {
		if want := "ExecStopPost=-/usr/bin/agentd fault post -on-exit " + code + " -root /var/lib/robot"; !strings.Contains(string(read(t, f)), "\n"+want+"\n") {
			t.Errorf("%s: want %s", f, want)
		}
	}
}

// TestEndHaltsTheBody: VEC-WDOG-01: what a robotd that died left running is halted before anything else, on the port that it had.
func TestEndHaltsTheBody(t *testing.T) {
	unit := string(read(t, "robotd.service"))
	_, start, _ := strings.Cut(unit, "\nExecStart=")
	start, _, _ = strings.Cut(start, "\n")
	_, first, _ := strings.Cut(unit, "\nExecStopPost=-")
	if first, _, _ = strings.Cut(first, "\n"); first != start+" -halt" {
		t.Errorf("first after its end: %s; want %s -halt", first, start)
	}
}

// TestAccountsAndFolders lets systemd create accounts and folders below a separate root.
func TestAccountsAndFolders(t *testing.T) {
	for name, folders := range map[string]map[string]os.FileMode{
		"kennel": {"etc/kennel": 0o755, "etc/kennel/ca": 0o700, "etc/kennel/secrets": 0o700},
		"robot":  {"var/lib/robot": 0o750, "var/lib/robot/run": 0o755, "var/lib/robot/dev/socket": 0o755},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		users, tmpfiles := filepath.Join(root, name+"-users.conf"), filepath.Join(root, name+"-tmpfiles.conf")
		write(t, users, read(t, name+".sysusers"), 0o644)
		run(t, "systemd-sysusers", "--root="+root, users)
		if passwd := string(read(t, filepath.Join(root, "etc/passwd"))); !strings.Contains(passwd, name+":") {
			t.Errorf("%s: accounts are %q", name, passwd)
		}
		text := string(read(t, name+".tmpfiles"))
		if os.Geteuid() != 0 { // only root can give folders away
			me := strconv.Itoa(os.Geteuid()) + " " + strconv.Itoa(os.Getegid())
			text = regexp.MustCompile(`(?:root|kennel|robot) +(?:root|kennel|robot) +-`).ReplaceAllString(text, me+" -")
		}
		write(t, tmpfiles, []byte(text), 0o644)
		leftover := filepath.Join(root, "var/lib/robot/run/fault_code")
		if name == "robot" {
			if err := os.MkdirAll(filepath.Dir(leftover), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, leftover, []byte("898\n"), 0o644)
			// VEC-BOOT-03: what the kernel was told at the boot before is old.
			for file, says := range map[string]string{"proc/cmdline": "anki.unbrick=1 quiet\n", "var/lib/robot/proc/cmdline": "quiet\n"} {
				if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o755); err != nil {
					t.Fatal(err)
				}
				write(t, filepath.Join(root, file), []byte(says), 0o644)
			}
		}
		run(t, "systemd-tmpfiles", "--root="+root, "--boot", "--remove", "--create", tmpfiles)
		for dir, mode := range folders {
			fi, err := os.Stat(filepath.Join(root, dir))
			if err != nil || fi.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v; want mode %o", dir, fi, err, mode)
			}
		}
		if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("run/ is not empty after a boot: %v", err)
		}
		if name == "robot" {
			if said := string(read(t, filepath.Join(root, "var/lib/robot/proc/cmdline"))); said != "anki.unbrick=1 quiet\n" {
				t.Errorf("the robot's programs hear the kernel was told %q", said)
			}
		}
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
