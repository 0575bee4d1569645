// Package mailspool puts letters into a folder, one .eml file each, where there is no mail server: a person opens them with any mail program,
// and a test reads them. A file is whole or absent.
//
// A file's name is its time, a mark of the address (mail.AddressMark), the account's id or "-", and the mail's id. The address itself is only
// inside. The folder and its files are for the user of the process alone: who reads them can open accounts.
package mailspool

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"kennel/cloud/identity/mail"
	"kennel/infra/atomicfile"
)

const suffix = ".eml"

// Spool is a mail.Transport and mail.Eraser. Safe for concurrent use, also by several processes.
type Spool struct {
	root *os.Root
	now  func() time.Time
}

// Open makes the folder if need be. Close gives it back.
func Open(dir string) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("mail.spool: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("mail.spool: %w", err)
	}
	if err := atomicfile.CleanTemp(root, "."); err != nil {
		return nil, errors.Join(fmt.Errorf("mail.spool: %w", err), root.Close())
	}
	return &Spool{root, time.Now}, nil
}

// Close gives the folder back.
func (s *Spool) Close() error { return s.root.Close() }

// Send implements mail.Transport. The same mail again replaces its file.
func (s *Spool) Send(_ context.Context, m mail.Message) error {
	entries, err := s.entries()
	if err != nil {
		return err
	}
	name := ""
	for _, e := range entries {
		if e.id == m.ID {
			name = e.file
		}
	}
	if name == "" {
		account := m.Account
		if account == "" {
			account = "-"
		}
		name = strings.Join([]string{strconv.FormatInt(s.now().UnixMilli(), 10), mail.AddressMark(m.To), account, m.ID}, "_") + suffix
	}
	raw, err := m.Bytes()
	if err != nil {
		return fmt.Errorf("mail.spool: %w", err)
	}
	return atomicfile.Write(s.root, name, raw, 0o600, 0o700)
}

// entry holds the fields of a file's name.
type entry struct {
	file, mark, account, id string
	at                      time.Time
}

func parse(file string) (entry, bool) {
	base, ok := strings.CutSuffix(file, suffix)
	f := strings.Split(base, "_")
	if !ok || len(f) != 4 {
		return entry{}, false
	}
	ms, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil {
		return entry{}, false
	}
	return entry{file, f[1], f[2], f[3], time.UnixMilli(ms)}, true
}

// entries lists the letters, oldest first. Other files are not ours.
func (s *Spool) entries() ([]entry, error) {
	all, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("mail.spool: %w", err)
	}
	var out []entry
	for _, f := range all {
		if e, ok := parse(f.Name()); ok {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b entry) int { return a.at.Compare(b.at) })
	return out, nil
}

func (s *Spool) about(account string, addresses []string) ([]entry, error) {
	all, err := s.entries()
	if err != nil {
		return nil, err
	}
	var marks []string
	for _, a := range addresses {
		marks = append(marks, mail.AddressMark(a))
	}
	return slices.DeleteFunc(all, func(e entry) bool { return (account == "" || e.account != account) && !slices.Contains(marks, e.mark) }), nil
}

// Kept implements mail.Eraser.
func (s *Spool) Kept(_ context.Context, account string, addresses []string) ([][]byte, error) {
	list, err := s.about(account, addresses)
	if err != nil {
		return nil, err
	}
	var out [][]byte
	for _, e := range list {
		b, err := s.root.ReadFile(e.file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("mail.spool: %w", err)
		}
		out = append(out, b)
	}
	return out, nil
}

// EraseKept implements mail.Eraser.
func (s *Spool) EraseKept(_ context.Context, account string, addresses []string) error {
	list, err := s.about(account, addresses)
	if err != nil {
		return err
	}
	return s.remove(list)
}

// ForgetBefore implements mail.Eraser.
func (s *Spool) ForgetBefore(_ context.Context, t time.Time) error {
	list, err := s.entries()
	if err != nil {
		return err
	}
	return s.remove(slices.DeleteFunc(list, func(e entry) bool { return !e.at.Before(t) }))
}

func (s *Spool) remove(list []entry) error {
	for _, e := range list {
		if err := s.root.Remove(e.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("mail.spool: %w", err)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return atomicfile.SyncDir(s.root, ".")
}
