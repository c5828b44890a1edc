"""What must hold whatever spaces, histories and values come: drawn cases, and the properties checked on them."""
