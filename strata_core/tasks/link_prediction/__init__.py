"""Which links does one large graph lack?"""
