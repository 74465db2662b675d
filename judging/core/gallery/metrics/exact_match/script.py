def preprocess(data, resp, **kwargs):
    reference = data.get("ref_answer")
    reference = data.get("gt") if reference is None else reference
    return None if reference is None else resp.content.strip() == str(reference).strip()
