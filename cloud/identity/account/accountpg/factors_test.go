package accountpg_test

import (
	"testing"

	"kennel/cloud/identity/account/accountpg"
	"kennel/infra/auth"
)

// TestPasswordOnly: a passkey or a confirmed authenticator app is a second factor; an app whose first code was never right is none, and owners and
// stopped operators do not count.
func TestPasswordOnly(t *testing.T) {
	ctx, w := t.Context(), newWorld(t, 1)
	store := accountpg.New(w.pool)
	made := map[string]string{}
	for _, e := range []string{"app", "begun", "key", "none", "stopped"} {
		made[e] = string(w.create(t, e+"@staff.example", auth.Support).ID)
	}
	w.create(t, "owner@home.example", auth.Owner)
	for sql, who := range map[string]string{
		`INSERT INTO account_totp (account, secret, since) VALUES ($1, 'x', now())`:                                          "app",
		`INSERT INTO account_totp (account, secret) VALUES ($1, 'x')`:                                                        "begun",
		`INSERT INTO account_passkey (id, account, name, credential, created_at) VALUES ('\x01', $1, 'laptop', '{}', now())`: "key",
		`UPDATE account_account SET disabled = true WHERE id = $1`:                                                           "stopped",
	} {
		if _, err := w.pool.Exec(ctx, sql, made[who]); err != nil {
			t.Fatal(err)
		}
	}
	all, without, err := store.PasswordOnly(ctx)
	if err != nil || all != 4 || len(without) != 2 || without[0] != "begun@staff.example" || without[1] != "none@staff.example" {
		t.Errorf("%d, %v, %v; want 4, and begun and none", all, without, err)
	}
}
