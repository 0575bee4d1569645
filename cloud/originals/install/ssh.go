package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"kennel/infra/errs"
)

// Login says how to reach a robot over SSH.
type Login struct {
	Addr        string // host:port
	Key         []byte // private key of the robot's root user, in PEM or OpenSSH's form
	Fingerprint string // of the robot's host key, as ssh-keygen -l prints it: SHA256:...; "": KnownHosts and Confirm decide
	KnownHosts  string // file; "": none
	// Confirm asks whether the fingerprint is the robot's; its error ends the login.
	Confirm func(fingerprint string) error
}

// Bounds of a login and of one script; the restart takes longest.
const (
	loginTime  = 15 * time.Second
	scriptTime = 2 * time.Minute
	lostTime   = time.Second // until what was under way has heard that the connection is lost
)

// Shell runs scripts on a robot over one SSH connection. It implements Robot.
type Shell struct {
	client *ssh.Client
	lost   chan struct{} // closed when the connection has ended
}

// Dial logs in as root. Errors say what to do.
func Dial(ctx context.Context, l Login) (*Shell, error) {
	signer, err := ssh.ParsePrivateKey(l.Key)
	if err != nil {
		return nil, errs.New(errs.Invalid, "private key: %w; want a key without a passphrase, in PEM or OpenSSH's form", err)
	}
	conn, err := (&net.Dialer{Timeout: loginTime}).DialContext(ctx, "tcp", l.Addr)
	if err != nil {
		return nil, fmt.Errorf("no SSH at %s (%w): only developer and unlocked robots have it; check that the robot is on and that this is its address", l.Addr, err)
	}
	var refused error // by check, whose error the library flattens
	check := func(name string, remote net.Addr, key ssh.PublicKey) error {
		refused = l.check(name, remote, key)
		return refused
	}
	_ = conn.SetDeadline(time.Now().Add(loginTime))                     // a connection takes deadlines
	known := append(ssh.SupportedAlgorithms().HostKeys, ssh.KeyAlgoRSA) // the last for the OpenSSH of 2018 on robots; its fingerprint is checked
	c, chans, reqs, err := ssh.NewClientConn(conn, l.Addr, &ssh.ClientConfig{User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: check, HostKeyAlgorithms: known})
	switch {
	case err == nil:
		_ = conn.SetDeadline(time.Time{})
		s := &Shell{ssh.NewClient(c, chans, reqs), make(chan struct{})}
		go func() {
			defer close(s.lost)
			_ = s.client.Wait() // why is the error of what was under way
		}()
		return s, nil
	case refused != nil:
		err = refused
	case strings.Contains(err.Error(), "unable to authenticate"):
		err = errs.New(errs.Invalid, "%s does not accept this key for root: use the key that the robot's unlocking or its developer build came with", l.Addr)
	default:
		err = fmt.Errorf("SSH at %s: %w", l.Addr, err)
	}
	_ = conn.Close() // nothing was done on it
	return nil, err
}

// check decides whether a host key is the robot's.
func (l Login) check(name string, remote net.Addr, key ssh.PublicKey) error {
	has := ssh.FingerprintSHA256(key)
	if l.Fingerprint != "" {
		if has != l.Fingerprint {
			return errs.New(errs.Invalid, "the host key of %s is %s, not %s: this is another robot, or another machine answers in its place", l.Addr, has, l.Fingerprint)
		}
		return nil
	}
	if l.KnownHosts != "" {
		known, err := knownhosts.New(l.KnownHosts)
		if err != nil {
			return fmt.Errorf("known hosts: %w", err)
		}
		err = known(name, remote, key)
		other, ok := errors.AsType[*knownhosts.KeyError](err)
		switch {
		case err == nil:
			return nil
		case !ok:
			return fmt.Errorf("known hosts: %w", err)
		case len(other.Want) > 0:
			return errs.New(errs.Invalid, "the host key of %s is %s, which is not the one in %s: a robot has a new one after its user data was erased. If that is so, remove the old line", l.Addr, has, l.KnownHosts)
		}
	}
	return l.Confirm(has)
}

// Run implements Robot.
func (s *Shell) Run(ctx context.Context, script string, stdin []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, scriptTime)
	defer cancel()
	var out, errOut bytes.Buffer
	ended := make(chan error, 1) // a robot that has left the network never answers
	go func() {
		session, err := s.client.NewSession()
		if err == nil {
			context.AfterFunc(ctx, func() { _ = session.Close() }) // Run has returned
			session.Stdin, session.Stdout, session.Stderr = bytes.NewReader(stdin), &out, &errOut
			err = session.Run(script)
		}
		ended <- err
	}()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		return "", fmt.Errorf("the robot does not answer: %w", ctx.Err())
	case <-s.lost:
		select { // what was under way ends with the connection; a session that begins just then may wait for ever
		case err = <-ended:
		case <-time.After(lostTime):
			return "", errors.New("connection lost")
		}
	}
	if e, ok := errors.AsType[*ssh.ExitError](err); ok {
		return "", Failed{e.ExitStatus(), strings.TrimSpace(errOut.String())}
	}
	if err != nil {
		return "", fmt.Errorf("connection lost: %w", err)
	}
	return out.String(), nil
}

// Close ends the connection.
func (s *Shell) Close() error { return s.client.Close() }
