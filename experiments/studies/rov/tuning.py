def run(study): pass
