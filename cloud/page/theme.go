package page

import (
	"net/http"
	"time"
)

// themeCookie remembers light or dark, where a person chose one. It is no secret and identifies no person.
const themeCookie = "kennel_theme"

// Theme returns the reader's choice, "light" or "dark"; "" follows their system.
func Theme(r *http.Request) string {
	c, err := r.Cookie(themeCookie)
	if err != nil || c.Value != "light" && c.Value != "dark" {
		return ""
	}
	return c.Value
}

// SetTheme keeps what the form's button "theme" says for a year, and leads back to its field "next", a page below home. It works without a
// script, and a page is drawn right from its first moment.
func SetTheme(home string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		form, err := Form(r)
		if err != nil {
			http.Error(w, Words(err), http.StatusBadRequest)
			return
		}
		c := &http.Cookie{Name: themeCookie, Value: form.Get("theme"), Path: "/", MaxAge: int(365 * 24 * time.Hour / time.Second), HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode}
		if c.Value != "light" && c.Value != "dark" {
			c.Value, c.MaxAge = "", -1
		}
		http.SetCookie(w, c)
		http.Redirect(w, r, Local(form.Get("next"), home), http.StatusSeeOther)
	}
}

// Folded reports whether the reader folded the main menu; the page's script keeps that in a cookie.
func Folded(r *http.Request) bool {
	c, err := r.Cookie("kennel_nav")
	return err == nil && c.Value == "folded"
}
