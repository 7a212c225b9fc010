"""Contacts, calendars and bibliographies, each entry of which is a card of labelled fields."""
