// Package install gives an original robot what originals.Guide says, over SSH, on software that allows it: the server file, and for a private root the
// certificate and what makes the software read it (VEC-CLD-01). Files are written beside those that they replace, read back, and swapped in by one script that
// a lost connection does not end; what was there before stays beside them until Undo.
package install

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"kennel/cloud/originals"
	"kennel/cloud/originals/replay"
	"kennel/infra/errs"
)

// Robot runs shell scripts on a robot as root.
type Robot interface {
	// Run returns what a script prints. The error is a Failed if the script ended with another status than 0.
	Run(ctx context.Context, script string, stdin []byte) (string, error)
}

// Failed is a script that ended with another status than 0.
type Failed struct {
	Status int
	Said   string // on standard error
}

func (f Failed) Error() string {
	if f.Said == "" {
		return fmt.Sprintf("status %d", f.Status)
	}
	return f.Said
}

// Files of a robot beside those that the guide names.
const (
	tokenFile   = "/data/data/com.anki.victor/persistent/token/token.jwt"
	programFile = "/anki/bin/vic-cloud"
	versionFile = "/anki/etc/version"
	factoryFile = "/factory/cloud/AnkiRobotDeviceCert.pem"
)

// Suffixes beside a file: its next content, the content before the first installation, and the mark that there was no file before.
const (
	next   = ".kennel-new"
	before = ".before-kennel"
	none   = ".not-before-kennel"
)

// seedUser is the user of a seed token: no account has it.
const seedUser = "kennel-seed"

// seedTime is how long a seed token is good: the owner signs in within that time.
const seedTime = 30 * 24 * time.Hour

// Config says what to install.
type Config struct {
	Guide originals.Guide
	Tell  func(originals.Step) // called after each step; may be nil
	Now   time.Time
}

// Install gives the robot what it needs. An installation that fails leaves the robot as it was, unless the connection is lost after the swap: then the files
// are complete, and installing again does the rest. Installing twice changes nothing.
func Install(ctx context.Context, r Robot, c Config) originals.Result {
	j := &job{Config: c, robot: r}
	done := "The robot has what it needs."
	out := j.run(ctx, []step{{"software", j.software}, {"files", j.compare}, {"permission", j.unlock}, {"backup", j.stage}, {"swap", j.swap}, {"restart", j.restart}, {"verification", j.verify}})
	if !out.OK {
		return out
	}
	if len(j.changes) == 0 {
		done = "The robot already has what it needs; nothing was changed."
	}
	switch {
	case j.seeded():
		done += " Say \"Hey Vector\" and a sentence to it once, so that it reads the root. Then sign it in."
	case j.Guide.Root != "" && !j.reads() && !j.Guide.Public:
		done += " It reads the root at its next voice request."
	default:
		done += " Sign it in."
	}
	out.Sentence = done
	return out
}

// Undo puts back what was there before the first installation.
func Undo(ctx context.Context, r Robot, c Config) originals.Result {
	j := &job{Config: c, robot: r, undo: true}
	out := j.run(ctx, []step{{"software", j.software}, {"files", j.installed}, {"permission", j.unlock}, {"swap", j.swap}, {"restart", j.restart}})
	if !out.OK {
		return out
	}
	out.Sentence = "The robot is as it was before the installation."
	if len(j.changes) == 0 {
		out.Sentence = "Nothing is installed on this robot; nothing was changed."
	}
	return out
}

type step struct {
	name string
	do   func(context.Context) (detail string, err error)
}

// file is a file to install.
type file struct {
	path, mode string
	content    []byte
}

type job struct {
	Config
	robot   Robot
	undo    bool
	private []string // further files from which this robot's software reads roots
	thing   string
	token   string // the content of its token file
	files   []file
	changes []file
	locked  bool // its system was read-only
	open    bool // and now is not
	staged  bool
	swapped bool
}

// run takes the steps until one fails or there is nothing to change, and then cleans up.
func (j *job) run(ctx context.Context, steps []step) originals.Result {
	out := originals.Result{OK: true, At: j.Now}
	for i, s := range steps {
		began := time.Now()
		detail, err := s.do(ctx)
		told := originals.Step{Name: s.name, OK: err == nil, Detail: detail, Millis: time.Since(began).Milliseconds()}
		if err != nil {
			told.Detail = err.Error()
			out.OK, out.Sentence = false, fmt.Sprintf("Step %d of %d, %s, fails: %s.", i+1, len(steps), s.name, strings.TrimSuffix(told.Detail, "."))
		}
		j.told(&out, told)
		if err != nil || s.name == "files" && len(j.changes) == 0 {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // a robot is not left half done
	defer cancel()
	if !out.OK {
		out.Sentence += " " + j.back(ctx)
	}
	if err := j.lock(ctx); err != nil {
		j.told(&out, originals.Step{Name: "protection", Detail: "its system stays writable until it restarts: " + err.Error()})
	}
	return out
}

func (j *job) told(out *originals.Result, s originals.Step) {
	out.Steps = append(out.Steps, s)
	if j.Tell != nil {
		j.Tell(s)
	}
}

// q quotes a path of the robot for its shell.
func q(p string) string { return "'" + strings.ReplaceAll(p, "'", `'\''`) + "'" }

// read returns the content of a file; ok is false if there is none.
func (j *job) read(ctx context.Context, p string) (content string, ok bool, err error) {
	out, err := j.robot.Run(ctx, "if [ -e "+q(p)+" ]; then echo yes && cat "+q(p)+"; fi", nil)
	content, ok = strings.CutPrefix(out, "yes\n")
	return content, ok, err
}

// software finds out what runs there, and which robot it is.
func (j *job) software(ctx context.Context) (string, error) {
	user, err := j.robot.Run(ctx, "id -u", nil)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(user) != "0" {
		return "", errs.New(errs.Invalid, "the login is not root (user id %s): only root may change its files", strings.TrimSpace(user))
	}
	cert, ok, err := j.read(ctx, factoryFile)
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode([]byte(cert))
	if !ok || block == nil {
		return "", errs.New(errs.Invalid, "%s is missing or is no certificate: this is not an original robot", factoryFile)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w", factoryFile, err)
	}
	j.thing = c.Subject.CommonName
	version, _, err := j.read(ctx, versionFile)
	if err != nil {
		return "", err
	}
	for _, p := range j.Guide.OtherRoots {
		_, err := j.robot.Run(ctx, "grep -q "+q(strings.TrimPrefix(p, "/"))+" "+q(programFile), nil)
		if f, ok := errors.AsType[Failed](err); ok && f.Status == 1 {
			continue
		} else if err != nil {
			return "", fmt.Errorf("%s: %w", programFile, err)
		}
		j.private = append(j.private, p)
	}
	kind := "stock software, which reads a root at its first voice request"
	if j.reads() {
		kind = "community software, which reads a root when it starts"
	}
	return fmt.Sprintf("%s, version %s, %s", j.thing, strings.TrimSpace(version), kind), nil
}

// reads reports whether its software reads a root by itself when it starts.
func (j *job) reads() bool { return len(j.private) > 0 }

// seeded reports whether a seed token is among what is installed.
func (j *job) seeded() bool { return len(j.files) > 0 && j.files[0].path == tokenFile }

// compare decides which files the robot needs and which of them it lacks. The server file comes last: the others are of no effect without it.
func (j *job) compare(ctx context.Context) (string, error) {
	token, _, err := j.read(ctx, tokenFile)
	if err != nil {
		return "", err
	}
	if j.Guide.Root != "" {
		if user, until := claims(token); !j.reads() && !j.Guide.Public && (user == "" || !j.Now.Before(until)) {
			j.files = append(j.files, file{tokenFile, "664", seed(j.thing, j.Now)})
		} else if user == seedUser {
			j.files = append(j.files, file{tokenFile, "664", []byte(token)})
		}
		for _, p := range append([]string{j.Guide.RootFile}, j.private...) {
			j.files = append(j.files, file{p, "644", []byte(j.Guide.Root)})
		}
	}
	j.files = append(j.files, file{j.Guide.ConfigFile, "644", []byte(j.Guide.ServerConfig.JSON() + "\n")})
	var names []string
	for _, f := range j.files {
		has, ok, err := j.read(ctx, f.path)
		if err != nil {
			return "", err
		}
		if !ok || has != string(f.content) {
			j.changes = append(j.changes, f)
			names = append(names, f.path)
		}
	}
	if len(names) == 0 {
		return "all as they should be", nil
	}
	return "to be written: " + strings.Join(names, ", "), nil
}

// installed finds the files that were installed. A token that its owner's login has put in the place of the seed stays.
func (j *job) installed(ctx context.Context) (string, error) {
	var names []string
	for _, p := range append([]string{j.Guide.ConfigFile, j.Guide.RootFile, tokenFile}, j.Guide.OtherRoots...) {
		there, err := j.robot.Run(ctx, "if [ -e "+q(p+before)+" ] || [ -e "+q(p+none)+" ] || [ -e "+q(p+next)+" ]; then echo yes; fi", nil)
		if err != nil {
			return "", err
		}
		if there == "" {
			continue
		}
		f := file{path: p}
		if p == tokenFile {
			token, _, err := j.read(ctx, p)
			if err != nil {
				return "", err
			}
			if user, _ := claims(token); user != seedUser {
				f.mode = "keep"
			}
		}
		j.changes = append(j.changes, f)
		names = append(names, p)
	}
	if len(names) == 0 {
		return "none is installed", nil
	}
	return "to be put back: " + strings.Join(names, ", "), nil
}

// unlock makes its system writable.
func (j *job) unlock(ctx context.Context) (string, error) {
	out, err := j.robot.Run(ctx, `while read -r d m t o r; do if [ "$m" = / ]; then x=$o; fi; done < `+q("/proc/mounts")+`; case ",$x," in *,ro,*) echo ro;; esac`, nil)
	if err != nil {
		return "", err
	}
	if j.locked = strings.TrimSpace(out) == "ro"; !j.locked {
		return "its system is writable", nil
	}
	if _, err := j.robot.Run(ctx, "mount -o remount,rw /", nil); err != nil {
		return "", fmt.Errorf("its software does not let its system be changed (%w): give this cloud a certificate that the robot trusts already (robots.cert_file, api.acme)", err)
	}
	j.open = true
	return "its system was made writable for the installation", nil
}

// lock ends what unlock began.
func (j *job) lock(ctx context.Context) error {
	if !j.open {
		return nil
	}
	_, err := j.robot.Run(ctx, "sync; mount -o remount,ro /", nil)
	return err
}

// stage writes each file beside the one that it replaces, keeps a copy of that one, and reads back what it wrote: a connection that is lost may cut a file.
func (j *job) stage(ctx context.Context) (string, error) {
	j.staged = true
	for _, f := range j.changes {
		p := q(f.path)
		script := "set -e; d=" + q(path.Dir(f.path)) + `; p=$d; while [ ! -d "$p" ]; do p=${p%/*}; done; o=$(stat -c %u:%g "$p"); mkdir -p "$d"; chown "$o" "$d"; ` +
			"cat > " + q(f.path+next) + "; chmod " + f.mode + " " + q(f.path+next) + `; chown "$o" ` + q(f.path+next) + "; " +
			"if [ ! -e " + q(f.path+before) + " ] && [ ! -e " + q(f.path+none) + " ]; then if [ -e " + p + " ]; then cp -p " + p + " " + q(f.path+before+next) +
			"; mv " + q(f.path+before+next) + " " + q(f.path+before) + "; else : > " + q(f.path+none) + "; fi; fi"
		if _, err := j.robot.Run(ctx, script, f.content); err != nil {
			return "", fmt.Errorf("write beside %s: %w", f.path, err)
		}
		if got, _, err := j.read(ctx, f.path+next); err != nil {
			return "", fmt.Errorf("read back %s: %w", f.path+next, err)
		} else if got != string(f.content) {
			return "", errs.New(errs.Corrupt, "%s has %d bytes, want the %d that were sent", f.path+next, len(got), len(f.content))
		}
	}
	return "what is replaced is kept beside each file as *" + before, nil
}

// swap puts the new files, or the old ones, in their place. It is one script that ignores the end of its connection.
func (j *job) swap(ctx context.Context) (string, error) {
	script := "trap '' HUP INT TERM PIPE; "
	if j.undo {
		script += j.putBack()
	} else {
		var moves []string
		for _, f := range j.changes {
			moves = append(moves, "mv -f "+q(f.path+next)+" "+q(f.path))
		}
		script += strings.Join(moves, " && ") + " && sync"
	}
	j.swapped = true // as far as is known once it began
	if _, err := j.robot.Run(ctx, script, nil); err != nil {
		return "", err
	}
	return "done", nil
}

// putBack is the script that puts back what was there before.
func (j *job) putBack() string {
	script := "set -e; "
	for _, f := range j.changes {
		script += "rm -f " + q(f.path+next) + " " + q(f.path+before+next) + "; "
		if f.mode == "keep" {
			script += "rm -f " + q(f.path+before) + " " + q(f.path+none) + "; "
			continue
		}
		script += "if [ -e " + q(f.path+before) + " ]; then mv -f " + q(f.path+before) + " " + q(f.path) + "; elif [ -e " + q(f.path+none) + " ]; then rm -f " + q(f.path) + " " + q(f.path+none) + "; fi; "
	}
	return script + "sync"
}

// back undoes what a failed installation did, and says how the robot is.
func (j *job) back(ctx context.Context) string {
	var script string
	switch {
	case j.undo && j.swapped:
		return "Undo again: it continues where it stopped."
	case !j.staged:
		return "Nothing was changed."
	case j.swapped:
		script = "trap '' HUP INT TERM PIPE; " + j.putBack() + "; systemctl stop anki-robot.target; systemctl start anki-robot.target || :"
	}
	for _, f := range j.changes {
		if !j.swapped { // an earlier installation's copies stay
			script += "; rm -f " + q(f.path+next) + " " + q(f.path+before+next) + "; if cmp -s " + q(f.path) + " " + q(f.path+before) + "; then rm -f " + q(f.path+before) + "; fi; if [ ! -e " + q(f.path) + " ]; then rm -f " + q(f.path+none) + "; fi"
		}
	}
	_, err := j.robot.Run(ctx, strings.TrimPrefix(script, "; "), nil)
	switch {
	case err == nil && j.swapped:
		return "The files from before the installation were put back."
	case err == nil:
		return "Nothing was changed."
	case j.swapped:
		return fmt.Sprintf("The robot does not say whether the new files are in place (%v): install again, which continues there, or undo.", err)
	}
	return fmt.Sprintf("Its own files are unchanged; files *%s may lie beside them (%v). Installing again, or undoing, removes them.", next, err)
}

// restart lets its programs read the files.
func (j *job) restart(ctx context.Context) (string, error) {
	if _, err := j.robot.Run(ctx, "systemctl stop anki-robot.target && systemctl start anki-robot.target", nil); err != nil {
		return "", fmt.Errorf("restart of anki-robot.target: %w", err)
	}
	return "its programs run again", nil
}

// verify sees that the files are there and that the cloud process runs with them.
func (j *job) verify(ctx context.Context) (string, error) {
	for _, f := range j.changes {
		got, _, err := j.read(ctx, f.path)
		if err != nil {
			return "", err
		}
		if got != string(f.content) {
			return "", errs.New(errs.Corrupt, "%s has changed since it was written", f.path)
		}
	}
	if _, err := j.robot.Run(ctx, "systemctl is-active vic-cloud", nil); err != nil {
		return "", fmt.Errorf("vic-cloud does not run after the restart (%w)", err)
	}
	return "the files are in place, and vic-cloud runs", nil
}

// seed makes a token that lets stock software send a voice request: it checks the form, never the signature. The cloud grants nothing for it.
func seed(thing string, now time.Time) []byte {
	part := func(v map[string]any) string {
		b, _ := json.Marshal(v) // strings alone
		return base64.RawURLEncoding.EncodeToString(b)
	}
	return []byte(part(map[string]any{"alg": "RS512", "typ": "JWT"}) + "." + part(map[string]any{"token_id": seedUser, "token_type": "user+robot", "user_id": seedUser, "requestor_id": thing,
		"iat": now.UTC().Format(time.RFC3339), "expires": now.Add(seedTime).UTC().Format(time.RFC3339), "permissions": nil}) + ".AA")
}

// claims returns whose a token is and until when it is good; "" for one that the robot's software would not take.
func claims(token string) (user string, until time.Time) {
	c, err := replay.Claims(strings.TrimSpace(token))
	if err != nil {
		return "", time.Time{}
	}
	until, _ = time.Parse(time.RFC3339, c["expires"].(string)) // Claims has parsed it
	return c["user_id"].(string), until
}
