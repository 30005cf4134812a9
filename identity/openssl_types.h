// OpenSSL's objects with owners. For the bodies of this room alone.

#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tactus::identity {

template <auto kFree>
struct Freed {
  template <typename T>
  void operator()(T* object) const {
    kFree(object);
  }
};

using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using X509Owner = std::unique_ptr<X509, Freed<X509_free>>;
using KeyOwner = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using StoreOwner = std::unique_ptr<X509_STORE, Freed<X509_STORE_free>>;
using StoreContextOwner = std::unique_ptr<X509_STORE_CTX, Freed<X509_STORE_CTX_free>>;
using ExtensionOwner = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;
using RequestOwner = std::unique_ptr<X509_REQ, Freed<X509_REQ_free>>;
using NamesOwner = std::unique_ptr<GENERAL_NAMES, Freed<GENERAL_NAMES_free>>;

// A reader of `text`, which outlives it.
inline Bio Reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// The first certificate of a PEM text. Null: it has none.
inline X509Owner ReadX509(const std::string& pem) {
  const Bio in = Reader(pem);
  return X509Owner(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
}

// All certificates of a PEM text, in order.
inline std::vector<X509Owner> ReadAllX509(const std::string& pem) {
  const Bio in = Reader(pem);
  std::vector<X509Owner> all;
  while (X509* const one = PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)) {
    all.emplace_back(one);
  }
  ERR_clear_error();  // the end of the text
  return all;
}

// Never asks at the terminal for a password: a key that has one is not read. Null: it has none.
inline KeyOwner ReadKey(const std::string& pem) {
  const Bio in = Reader(pem);
  const auto none = [](char*, int, int, void*) { return 0; };
  return KeyOwner(PEM_read_bio_PrivateKey(in.get(), nullptr, none, nullptr));
}

// Those of an authority's file, which may hold several while one takes the place of another. Null:
// it has none.
inline StoreOwner ReadTrusted(const std::string& pem) {
  StoreOwner store(X509_STORE_new());
  int count = 0;
  for (const X509Owner& one : ReadAllX509(pem)) {
    count += X509_STORE_add_cert(store.get(), one.get());
  }
  return count > 0 ? std::move(store) : nullptr;
}

// All that was written to a memory BIO.
inline std::string Written(const Bio& bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

// Empty: OpenSSL could not.
inline std::string PemOf(X509* certificate) {
  const Bio out(BIO_new(BIO_s_mem()));
  return PEM_write_bio_X509(out.get(), certificate) == 1 ? Written(out) : "";
}

inline std::string PemOf(EVP_PKEY* key) {
  const Bio out(BIO_new(BIO_s_mem()));
  return PEM_write_bio_PrivateKey(out.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1
             ? Written(out)
             : "";
}

// The oldest error that this thread's queue holds, which is emptied.
inline std::string LastError() {
  char text[256] = "no reason given";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, text, sizeof text);
  }
  ERR_clear_error();
  return text;
}

}  // namespace tactus::identity
