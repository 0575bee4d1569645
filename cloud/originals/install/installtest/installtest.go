// Package installtest is an original robot that takes logins over SSH, with faults.
package installtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"kennel/cloud/originals"
)

// Config is the server file of a new robot.
const Config = `{"jdocs":"jdocs.api.anki.com:443"}`

// Robot is an SSH server before a folder that holds the files of a robot. Its scripts run in a real shell, with our tools; a path in quotes is one in the folder.
type Robot struct {
	Addr string // host:port
	Key  []byte // the private key of its root user
	Host ssh.PublicKey
	// Cut is the script while which the connection is lost: 1 is the first; 0: never. Scripts is how many there were.
	Cut, Scripts int
	UID          int  // of the login
	Deaf         bool // it does not answer after a login

	t     *testing.T
	dir   string // of the files
	marks string // folder of marks for tools
	host  ssh.Signer
}

// tools are the programs of the robot that its scripts may not have from us.
const tools = `mount() {
	if [ -e "$T/mount.locked" ]; then echo "mount: / is write-protected" >&2; return 32; fi
	case "$2" in *rw) m=rw;; *) m=ro;; esac; echo "rootfs / rootfs rw 0 0
/dev/root / ext4 $m,relatime 0 0" > "$R/proc/mounts"
}
systemctl() { echo "$@" >> "$T/systemctl.log"; ! [ "$1" = start -a -e "$T/systemctl.broken" ]; }
cat() {
	if [ $# = 0 ] && [ -e "$T/cat.full" ]; then head -c 10; echo "cat: write error: No space left on device" >&2; return 1; fi
	command cat "$@"
}
id() { echo $ROBOTUID; }
mv() { command mv "$@" && if [ -n "$LOST" ]; then kill -TERM $$; fi; }
`

// New returns a robot with that content of its cloud program, which was never installed on.
func New(t *testing.T, program string) *Robot {
	t.Helper()
	r := &Robot{t: t, dir: t.TempDir(), marks: t.TempDir()}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "vic:00e20100"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"/factory/cloud/AnkiRobotDeviceCert.pem": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), "/anki/etc/version": "2.0.1.6076\n", "/anki/bin/vic-cloud": program,
		originals.ConfigFile: Config, "/proc/mounts": "rootfs / rootfs rw 0 0\n/dev/root / ext4 ro,relatime 0 0\n", "/data/data/com.anki.victor/persistent/x": ""} {
		r.Write(name, content)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	r.Key = pem.EncodeToMemory(block)
	if _, private, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	if r.host, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.Addr, r.Host = l.Addr().String(), r.host.PublicKey()
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	t.Cleanup(func() { l.Close() })
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { r.serve(conn) })
		}
	})
	return r
}

// Write writes a file of the robot.
func (r *Robot) Write(name, content string) {
	r.t.Helper()
	if err := os.MkdirAll(filepath.Dir(r.dir+name), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(r.dir+name, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// Fault makes one of our tools fail from now on: mount.locked, cat.full or systemctl.broken.
func (r *Robot) Fault(mark string) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.marks, mark), nil, 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *Robot) serve(conn net.Conn) {
	defer conn.Close()
	accepted, err := ssh.ParsePrivateKey(r.Key)
	if err != nil {
		r.t.Error(err)
		return
	}
	conf := &ssh.ServerConfig{PublicKeyCallback: func(m ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if m.User() != "root" || !bytes.Equal(key.Marshal(), accepted.PublicKey().Marshal()) {
			return nil, errors.New("unknown key")
		}
		return nil, nil
	}}
	conf.AddHostKey(r.host)
	_, channels, requests, err := ssh.NewServerConn(conn, conf)
	if err != nil {
		return // a client that refuses our key
	}
	go ssh.DiscardRequests(requests)
	for n := range channels {
		if r.Deaf {
			continue
		}
		ch, reqs, err := n.Accept()
		if err != nil {
			return
		}
		for req := range reqs {
			if req.Type != "exec" {
				_ = req.Reply(false, nil)
				continue
			}
			_ = req.Reply(true, nil) // the client may be gone
			if !r.exec(ch, string(req.Payload[4:])) {
				return
			}
			break
		}
	}
}

// exec runs one script, as sshd does: one whose connection is lost gets a signal, here after each file that it moves. It reports whether the connection lasts.
func (r *Robot) exec(ch ssh.Channel, script string) bool {
	r.Scripts++ // a robot has one login at a time
	cut := r.Scripts == r.Cut
	cmd := exec.Command("/bin/sh", "-c", tools+strings.ReplaceAll(script, "'/", "'"+r.dir+"/"))
	cmd.Env = append(os.Environ(), "T="+r.marks, "R="+r.dir, "ROBOTUID="+strconv.Itoa(r.UID))
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if cut {
		cmd.Env, cmd.Stdin = append(cmd.Env, "LOST=1"), strings.NewReader("cut")
		_ = cmd.Run() // a script that was ended, or not
		return false
	}
	in, err := io.ReadAll(ch)
	if err != nil {
		return false
	}
	cmd.Stdin, cmd.Stdout = bytes.NewReader(in), ch
	status := uint32(0)
	if err := cmd.Run(); err != nil {
		status = 1
		if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() > 0 {
			status = uint32(e.ExitCode())
		}
	}
	_, _ = ch.Stderr().Write(errOut.Bytes())
	_, _ = ch.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, status))
	_ = ch.Close()
	return true
}

// Files returns the robot's files by their paths.
func (r *Robot) Files() map[string]string {
	r.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(r.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		out[strings.TrimPrefix(p, r.dir)] = string(b)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// Services returns what was asked of the robot's services, a line each.
func (r *Robot) Services() string {
	r.t.Helper()
	log, err := os.ReadFile(filepath.Join(r.marks, "systemctl.log"))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(log)
}
