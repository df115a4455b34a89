"""
Krein models: which language is this word?
==========================================

Strings have no features, but they have distances: the number of letters to insert, delete or replace. Similarities
made from them are not positive definite, so support vector machines and kernel ridge regression have no guarantee on
them. Krein models accept them unchanged.
"""

# %%
# The data
# --------
# Everyday words of four languages, with accents removed, and one function of two strings from
# `rapidfuzz <https://rapidfuzz.github.io/RapidFuzz/>`_.
import numpy as np
from rapidfuzz.distance import Levenshtein

words = {
    "english": """one two three four five six seven eight nine ten house street window door table chair bread water
        milk butter cheese apple horse cow sheep dog cat bird fish tree flower grass summer winter spring autumn
        morning evening night day week month year mother father brother sister daughter child friend heart hand foot
        head mouth nose throat knee shoulder white black green yellow blue brown write read speak walk think bring
        buy teach catch fight light right strength through enough weather together""",
    "german": """eins zwei drei vier funf sechs sieben acht neun zehn haus strasse fenster tur tisch stuhl brot wasser
        milch butter kase apfel pferd kuh schaf hund katze vogel fisch baum blume gras sommer winter fruhling herbst
        morgen abend nacht tag woche monat jahr mutter vater bruder schwester tochter kind freund herz hand fuss
        kopf mund nase hals knie schulter weiss schwarz grun gelb blau braun schreiben lesen sprechen gehen denken
        bringen kaufen lehren fangen kampfen licht recht starke durch genug wetter zusammen""",
    "italian": """uno due tre quattro cinque sei sette otto nove dieci casa strada finestra porta tavola sedia pane
        acqua latte burro formaggio mela cavallo mucca pecora cane gatto uccello pesce albero fiore erba estate
        inverno primavera autunno mattina sera notte giorno settimana mese anno madre padre fratello sorella figlia
        bambino amico cuore mano piede testa bocca naso gola ginocchio spalla bianco nero verde giallo azzurro
        marrone scrivere leggere parlare camminare pensare portare comprare insegnare prendere luce forza tempo""",
    "finnish": """yksi kaksi kolme nelja viisi kuusi seitseman kahdeksan yhdeksan kymmenen talo katu ikkuna ovi poyta
        tuoli leipa vesi maito voi juusto omena hevonen lehma lammas koira kissa lintu kala puu kukka ruoho kesa
        talvi kevat syksy aamu ilta yo paiva viikko kuukausi vuosi aiti isa veli sisko tytar lapsi ystava sydan kasi
        jalka paa suu nena kurkku polvi olkapaa valkoinen musta vihrea keltainen sininen ruskea kirjoittaa lukea
        puhua kavella ajatella tuoda ostaa opettaa ottaa kiinni valo voima lapi tarpeeksi saa yhdessa""",
}
X = [word for text in words.values() for word in text.split()]
y = np.array([name for name, text in words.items() for _ in text.split()])
similarity = Levenshtein.normalized_similarity
print(len(X), "words;", f"similarity of water and wasser: {similarity('water', 'wasser'):.2f}")

# %%
# How indefinite?
# ---------------
# Some eigenvalues are negative: no points have these similarities as inner products.
from mercerless.inspection import SpectrumDisplay
from mercerless.kernels import PairFunction

# sphinx_gallery_thumbnail_number = 2
K = PairFunction(similarity)(X)
SpectrumDisplay.from_matrix(K, name="Edit similarities")

# %%
# Learning from strings
# ---------------------
# The function is the kernel, the strings are the items. Held-out folds choose everything else.
from sklearn.model_selection import StratifiedKFold, cross_val_score

from mercerless import KreinRidgeClassifier, KreinSVC

folds = StratifiedKFold(5, shuffle=True, random_state=0)
model = KreinRidgeClassifier("precomputed", random_state=0)
print("Krein ridge       ", cross_val_score(model, K, y, cv=folds).mean().round(3))
print(
    "Krein SVM         ", cross_val_score(KreinSVC("precomputed"), K, y, cv=folds).mean().round(3)
)

# %%
# The usual methods on the same folds: the nearest word, and a support vector machine on the unchanged matrix or with
# the negative eigenvalues clipped.
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from mercerless.spectra import SpectrumTransformer

nearest = KNeighborsClassifier(1, metric="precomputed")
print("nearest word      ", cross_val_score(nearest, 1 - K, y, cv=folds).mean().round(3))
print(
    "SVC, as it is     ", cross_val_score(SVC(kernel="precomputed"), K, y, cv=folds).mean().round(3)
)
clipped = make_pipeline(SpectrumTransformer("clip"), SVC(kernel="precomputed"))
print("SVC, clipped      ", cross_val_score(clipped, K, y, cv=folds).mean().round(3))

# %%
# New words
# ---------
# The fitted model takes strings and gives calibrated probabilities.
import matplotlib.pyplot as plt

model = KreinRidgeClassifier(similarity, random_state=0).fit(X, y)
new = [
    "knowledge",
    "gesellschaft",
    "ragazza",
    "mansikka",
    "strawberry",
    "himmel",
    "finestrino",
    "restaurant",
]
P = model.predict_proba(new)
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
left = np.zeros(len(new))
for name, column in zip(model.classes_, P.T):
    ax.barh(new, column, left=left, label=name)
    left += column
ax.invert_yaxis()
ax.set_xlabel("probability")
ax.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)
figure.suptitle("Probabilities of the languages of new words")
plt.show()
