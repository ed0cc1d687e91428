def slug(title):
    return title.strip().lower().replace(" ", "-")
