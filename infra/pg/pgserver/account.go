package pgserver

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"kennel/infra/errs"
)

// Account is the account that the server runs as.
type Account struct {
	Name       string
	Credential *syscall.Credential // nil: as this process
}

// FindAccount returns this process's own account or, if that is root, an unprivileged one: "postgres", else the system's account without rights.
func FindAccount() (Account, error) {
	if os.Geteuid() != 0 {
		return Account{Name: "uid " + strconv.Itoa(os.Geteuid())}, nil
	}
	names := []string{"postgres", "nobody"}
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 != nil || err2 != nil || uid == 0 {
			continue
		}
		return Account{Name: name, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, nil
	}
	return Account{}, errs.New(errs.NotFound, "Postgres does not run as root: want one of the accounts %s on this machine", errs.List(names))
}

// Own gives path, which must exist, to the account.
func (a Account) Own(path string) error {
	if a.Credential == nil {
		return nil
	}
	return os.Chown(path, int(a.Credential.Uid), int(a.Credential.Gid))
}

// CheckTraversable checks that the account may enter every folder above dir, and names the first one that it may not (kind Denied).
// dir itself need not exist.
func (a Account) CheckTraversable(dir string) error {
	if a.Credential == nil {
		return nil // the same account as ours: making dir shows it
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	// The kernel walks the real path: a link's own parents count too, which EvalSymlinks of each prefix covers.
	for p := filepath.Dir(abs); ; p = filepath.Dir(p) {
		fi, err := os.Stat(p)
		if err == nil && !a.mayEnter(fi) {
			return errs.Coded(errs.Denied, "not_traversable",
				"folder %s (mode %04o) is closed to the account %q, as which Postgres must run to reach %s: chmod o+x %s, or choose another data folder",
				p, fi.Mode().Perm(), a.Name, abs, p)
		}
		if p == filepath.Dir(p) {
			break
		}
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil && real != filepath.Dir(abs) {
		return a.CheckTraversable(filepath.Join(real, filepath.Base(abs)))
	}
	return nil
}

func (a Account) mayEnter(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return true
	}
	x := fs.FileMode(0o001)
	switch {
	case st.Uid == a.Credential.Uid:
		x = 0o100
	case st.Gid == a.Credential.Gid:
		x = 0o010
	}
	return fi.Mode().Perm()&x != 0
}
